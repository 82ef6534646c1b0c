import { ALLOWLIST_MAX_ENTRIES, parseAllowlist } from '../access/ipAddress.ts';
import { parseScopes, SCOPES, type Scope, scopeNames } from '../access/scopes.ts';
import { BODY_INVALID, type FieldError } from '../lib/fieldError.ts';
import { parseNameText } from '../lib/nameText.ts';
import { isJsonObject, isMissing } from '../lib/parseJson.ts';
import { fail, ok, type Result } from '../lib/result.ts';

/** What an owner decides about a key. */
export interface KeySettings {
  readonly name: string;
  /** At least one, each once, in the order of the API document. */
  readonly scopes: readonly Scope[];
  /** As sent; empty: no restriction. */
  readonly allowlist: readonly string[];
}

export const KEY_LIMITS = {
  nameMaxCodePoints: 100,
  /** Keys of an account that are not revoked. */
  perOwner: 1_000,
} as const;

export const KEY_ERRORS = {
  limitReached: {
    field: null,
    code: 'LIMIT_REACHED',
    message: `an owner has at most ${KEY_LIMITS.perOwner} keys that are not revoked`,
  },
  nameRequired: { field: 'name', code: 'REQUIRED', message: 'name is required: text that is not blank' },
  nameInvalid: {
    field: 'name',
    code: 'INVALID',
    message: 'name holds control characters or half a character',
  },
  nameTooLong: {
    field: 'name',
    code: 'TOO_LONG',
    message: `name has more than ${KEY_LIMITS.nameMaxCodePoints} characters`,
  },
  scopesRequired: { field: 'scopes', code: 'REQUIRED', message: 'scopes must name at least one permission' },
  scopesInvalid: {
    field: 'scopes',
    code: 'INVALID',
    message: `scopes must be a list of permissions: ${SCOPES.join(', ')}`,
  },
  allowlistInvalid: {
    field: 'allowlist',
    code: 'INVALID',
    message: 'allowlist must be a list of addresses, as text',
  },
  allowlistTooLong: {
    field: 'allowlist',
    code: 'TOO_LONG',
    message: `allowlist has more than ${ALLOWLIST_MAX_ENTRIES} entries`,
  },
} as const satisfies Readonly<Record<string, FieldError>>;

/**
 * The body that creates a key; the error lists every invalid field. null acts as not sent, unknown fields are
 * ignored, an allowlist that is not sent is empty. Never throws, whatever the body.
 */
export function parseKeyCreate(body: unknown): Result<KeySettings, readonly FieldError[]> {
  if (!isJsonObject(body)) return fail([BODY_INVALID]);
  const name = readName(body['name'] ?? '');
  const scopes = readScopes(body['scopes'] ?? []);
  const allowlist = readAllowlist(body['allowlist'] ?? []);
  if (name.ok && scopes.ok && allowlist.ok) {
    return ok({ name: name.value, scopes: scopes.value, allowlist: allowlist.value });
  }
  return fail([name, scopes, allowlist].flatMap((read) => (read.ok ? [] : [read.error])));
}

/** The body that changes a key: only what is sent changes; otherwise as at creation. */
export function parseKeyChange(body: unknown): Result<Partial<KeySettings>, readonly FieldError[]> {
  if (!isJsonObject(body)) return fail([BODY_INVALID]);
  const errors: FieldError[] = [];
  const read = <T>(value: unknown, reader: (sent: unknown) => Result<T, FieldError>): T | undefined => {
    if (isMissing(value)) return undefined;
    const result = reader(value);
    if (result.ok) return result.value;
    errors.push(result.error);
    return undefined;
  };
  const name = read(body['name'], readName);
  const scopes = read(body['scopes'], readScopes);
  const allowlist = read(body['allowlist'], readAllowlist);
  if (errors.length > 0) return fail(errors);
  return ok({
    ...(name !== undefined && { name }),
    ...(scopes !== undefined && { scopes }),
    ...(allowlist !== undefined && { allowlist }),
  });
}

function readName(value: unknown): Result<string, FieldError> {
  const name = typeof value === 'string' ? parseNameText(value, KEY_LIMITS.nameMaxCodePoints) : fail('blank');
  return name.ok ? name : fail(NAME_FAULTS[name.error as keyof typeof NAME_FAULTS]);
}

const NAME_FAULTS = {
  blank: KEY_ERRORS.nameRequired,
  not_plain: KEY_ERRORS.nameInvalid,
  too_long: KEY_ERRORS.nameTooLong,
} as const;

function readScopes(value: unknown): Result<readonly Scope[], FieldError> {
  if (!isTextList(value)) return fail(KEY_ERRORS.scopesInvalid);
  if (value.length === 0) return fail(KEY_ERRORS.scopesRequired);
  const mask = parseScopes(value);
  return mask.ok ? ok(scopeNames(mask.value)) : fail(KEY_ERRORS.scopesInvalid);
}

function readAllowlist(value: unknown): Result<readonly string[], FieldError> {
  if (!isTextList(value)) return fail(KEY_ERRORS.allowlistInvalid);
  if (value.length > ALLOWLIST_MAX_ENTRIES) return fail(KEY_ERRORS.allowlistTooLong);
  const parsed = parseAllowlist(value);
  if (parsed.ok) return ok(value);
  // The entries are named by their places: what was sent is not repeated.
  const places = parsed.error.flatMap((error) => (error.kind === 'bad_entry' ? [error.index + 1] : []));
  return fail({
    field: 'allowlist',
    code: 'INVALID',
    message: `allowlist: neither an IPv4 address or network nor an IPv6 address: entry ${places.join(', ')}`,
  });
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}
