import { isImei } from '../devices/device.ts';
import { type NameError, parseNameText } from '../lib/parseText.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { ROLES, type Role } from '../tenants/accounts.sql.ts';
import { PASSWORD_MAX_CHARS, readEmail } from '../tenants/credentials.ts';

const TEXT_MAX = 100;
const ID_MAX = Number.MAX_SAFE_INTEGER;

// The errors of all these complete the sentence "--name …".

/** A name as people write it: trimmed, 1 to 100 characters (code points), without control characters. */
export function parseName(text: string): Result<string, string> {
  const name = parseNameText(text, TEXT_MAX);
  return name.ok ? name : fail(NAME_FAULTS[name.error]);
}

const NAME_FAULTS: Readonly<Record<NameError, string>> = {
  blank: 'is blank',
  not_plain: 'holds control characters',
  too_long: `is longer than ${TEXT_MAX} characters`,
};

/** The name of an organization, or null for the word "none". */
export function parseOrganization(text: string): Result<string | null, string> {
  return text.trim().toLowerCase() === 'none' ? ok(null) : parseName(text);
}

/** Trimmed and in lower case: one account has one spelling. */
export function parseEmail(text: string): Result<string, string> {
  const email = readEmail(text);
  return email === null ? fail('is not an e-mail address') : ok(email);
}

/** Kept as it is, blanks too. */
export function parsePassword(text: string): Result<string, string> {
  if (text === '') return fail('is empty');
  return text.length > PASSWORD_MAX_CHARS
    ? fail(`is longer than ${PASSWORD_MAX_CHARS} characters`)
    : ok(text);
}

export function parseRole(text: string): Result<Role, string> {
  const role = ROLES.find((one) => one === text.trim().toLowerCase());
  return role === undefined ? fail(`must be one of ${ROLES.join(', ')}`) : ok(role);
}

export function parseImei(text: string): Result<string, string> {
  const imei = text.trim();
  return isImei(imei) ? ok(imei) : fail('is not an IMEI of 14 to 17 digits');
}

/** A positive integer up to 2^53-1. */
export function parseId(text: string): Result<number, string> {
  return parseWhole(text, 1, ID_MAX);
}

/** A whole number in decimal digits, from `min` to `max`. */
export function parseWhole(text: string, min: number, max: number): Result<number, string> {
  const value = Number(text);
  if (/^[0-9]{1,16}$/.test(text) && value >= min && value <= max) return ok(value);
  return fail(`must be a whole number from ${min} to ${max}`);
}

/** The address of a service: http or https, with nothing behind its path. */
export function parseUrl(text: string): Result<string, string> {
  const url = URL.parse(text.trim());
  const isPlain = url !== null && url.username === '' && url.password === '' && !/[?#]/.test(text);
  if (!isPlain || !/^https?:$/.test(url.protocol))
    return fail('must be an address such as https://fleet.example.com');
  return ok(url.href);
}

/** An API key: visible ASCII characters, as a header may carry. */
export function parseKey(text: string): Result<string, string> {
  return /^[!-~]{1,200}$/.test(text) ? ok(text) : fail('is not an API key');
}

const GROUPS_MAX = 50;

/**
 * The groups of a device: each a name, trimmed, in the order given and each once; blank ones are left out. At most
 * 50. The error completes the sentence "--groups …".
 */
export function parseGroups(entries: readonly string[]): Result<readonly string[], string> {
  const groups = new Set<string>();
  for (const entry of entries) {
    if (entry.trim() === '') continue;
    const name = parseName(entry);
    if (!name.ok) return fail(`has a group that ${name.error}`);
    groups.add(name.value);
  }
  return groups.size > GROUPS_MAX ? fail(`has more than ${GROUPS_MAX} groups`) : ok([...groups]);
}
