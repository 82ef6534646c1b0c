import { ALLOWLIST_MAX_ENTRIES, parseAllowlist } from '../access/ipAddress.ts';
import { parseScopes, SCOPES, type Scope, scopeNames } from '../access/scopes.ts';
import { isJsonObject, isMissing, parseNameText } from '../lib/parseText.ts';
import { BODY_INVALID, type FieldError, fail, ok, type Result } from '../lib/result.ts';
import { parseIsoMs } from '../lib/time.ts';

/** What an owner decides about a key. */
export interface KeySettings {
  readonly name: string;
  /** At least one, each once, in the order of the API document. */
  readonly scopes: readonly Scope[];
  /** As sent; empty: no restriction. */
  readonly allowlist: readonly string[];
}

/** What is decided when a key is made, and not changed later. */
export interface NewKeySettings extends KeySettings {
  /** When it expires; null: never. */
  readonly expiresAt: Date | null;
  /** It sees only devices of these groups; empty: all. */
  readonly groups: readonly string[];
}

export const KEY_LIMITS = {
  nameMaxCodePoints: 100,
  groupsMax: 20,
  groupMaxCodePoints: 100,
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
  expiresAtInvalid: {
    field: 'expires_at',
    code: 'INVALID',
    message: 'expires_at must be an ISO 8601 time in the future',
  },
  groupsInvalid: {
    field: 'groups',
    code: 'INVALID',
    message: 'groups must be a list of names of groups, each of 1 to 100 characters',
  },
  groupsTooLong: { field: 'groups', code: 'TOO_LONG', message: 'groups has more than 20 names' },
} as const satisfies Readonly<Record<string, FieldError>>;

/**
 * The body that creates a key, at `nowMs` (epoch milliseconds). An allowlist that is not sent is empty; without
 * `expires_at` the key does not expire, and without `groups` it sees every device.
 */
export function parseKeyCreate(body: unknown, nowMs: number): Result<NewKeySettings, readonly FieldError[]> {
  if (!isJsonObject(body)) return fail([BODY_INVALID]);
  const { name, scopes, allowlist, expires_at: sentEnd, groups: sentGroups } = body;
  const whole = { name: name ?? '', scopes: scopes ?? [], allowlist: allowlist ?? [] };
  const settings = parseKeyChange(whole) as Result<KeySettings, readonly FieldError[]>;
  const end = isMissing(sentEnd) ? ok(null) : parseKeyEnd(sentEnd, nowMs);
  const groups = isMissing(sentGroups) ? ok([]) : parseKeyGroups(sentGroups);
  if (settings.ok && end.ok && groups.ok)
    return ok({ ...settings.value, expiresAt: end.value, groups: groups.value });
  return fail([
    ...(settings.ok ? [] : settings.error),
    ...(end.ok ? [] : [end.error]),
    ...(groups.ok ? [] : [groups.error]),
  ]);
}

/** The groups to which a key is to be limited, each once. An empty list limits it as little as an empty allowlist. */
export function parseKeyGroups(sent: unknown): Result<readonly string[], FieldError> {
  if (!isTextList(sent)) return fail(KEY_ERRORS.groupsInvalid);
  if (sent.length > KEY_LIMITS.groupsMax) return fail(KEY_ERRORS.groupsTooLong);
  const names = sent.map((name) => parseNameText(name, KEY_LIMITS.groupMaxCodePoints));
  if (!names.every((name) => name.ok)) return fail(KEY_ERRORS.groupsInvalid);
  return ok([...new Set(names.map(({ value }) => value))]);
}

/** When a key is to end: after `nowMs`. */
export function parseKeyEnd(sent: unknown, nowMs: number): Result<Date, FieldError> {
  const ms = typeof sent === 'string' ? parseIsoMs(sent) : null;
  return ms !== null && ms > nowMs ? ok(new Date(ms)) : fail(KEY_ERRORS.expiresAtInvalid);
}

/**
 * The body that changes a key: only what is sent changes, null acts as not sent, unknown fields are ignored. The error
 * lists every invalid field. Never throws, whatever the body.
 */
export function parseKeyChange(body: unknown): Result<Partial<KeySettings>, readonly FieldError[]> {
  if (!isJsonObject(body)) return fail([BODY_INVALID]);
  const settings: Record<string, unknown> = {};
  const errors: FieldError[] = [];
  for (const [field, read] of Object.entries(READERS)) {
    const sent = body[field];
    if (isMissing(sent)) continue;
    const result = read(sent);
    if (result.ok) settings[field] = result.value;
    else errors.push(result.error);
  }
  return errors.length > 0 ? fail(errors) : ok(settings as Partial<KeySettings>);
}

const READERS: {
  readonly [Field in keyof KeySettings]: (sent: unknown) => Result<KeySettings[Field], FieldError>;
} = {
  name: (sent) => {
    const name = typeof sent === 'string' ? parseNameText(sent, KEY_LIMITS.nameMaxCodePoints) : fail('blank');
    return name.ok ? name : fail(NAME_FAULTS[name.error as keyof typeof NAME_FAULTS]);
  },
  scopes: (sent) => {
    if (!isTextList(sent)) return fail(KEY_ERRORS.scopesInvalid);
    if (sent.length === 0) return fail(KEY_ERRORS.scopesRequired);
    const mask = parseScopes(sent);
    return mask.ok ? ok(scopeNames(mask.value)) : fail(KEY_ERRORS.scopesInvalid);
  },
  allowlist: (sent) => {
    if (!isTextList(sent)) return fail(KEY_ERRORS.allowlistInvalid);
    const parsed = parseAllowlist(sent);
    if (parsed.ok) return ok(sent);
    // The entries are named by their places: what was sent is not repeated.
    const places = parsed.error.flatMap((error) => (error.kind === 'bad_entry' ? [error.index + 1] : []));
    if (places.length === 0) return fail(KEY_ERRORS.allowlistTooLong);
    const message = `allowlist: neither an IPv4 address or network nor an IPv6 address: entry ${places.join(', ')}`;
    return fail({ ...KEY_ERRORS.allowlistInvalid, message });
  },
};

const NAME_FAULTS = {
  blank: KEY_ERRORS.nameRequired,
  not_plain: KEY_ERRORS.nameInvalid,
  too_long: KEY_ERRORS.nameTooLong,
} as const;

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}
