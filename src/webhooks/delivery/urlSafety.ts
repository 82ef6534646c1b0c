import type { CidrSet } from '../../access/cidrSet.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { parseSafeAddress } from './addressSafety.ts';

/** Why a URL cannot be a webhook URL. */
export type UrlError =
  | 'not_a_url'
  | 'too_long'
  | 'blank_or_control'
  | 'not_https'
  | 'user_info'
  | 'port_zero'
  | 'host_not_public'
  | 'address_not_public';

export const URL_MAX_CHARS = 2048;
const MAX_HOST_CHARS = 253;

/**
 * The rule for webhook URLs at creation and update, without any lookup. The URL must
 *
 * - use https and have at most 2048 characters;
 * - have no user info, no control characters, no backslash and no blanks around it;
 * - not have port 0;
 * - have as host a public name with a dot, or a public address in any spelling (decimal, octal, hex, percent-encoded,
 *   wide digits): the parser of the WHATWG URL standard reads all of them as the connection would.
 *
 * Addresses in `allowNets` are allowed too. If it is not empty, names that are not public are allowed as well: their
 * addresses are checked at each delivery. The value is the URL with its host normalised: lower case, punycode, without
 * one trailing dot.
 */
export function validateWebhookUrl(text: string, allowNets: CidrSet): Result<string, UrlError> {
  if (isTooLong(text)) return fail('too_long');
  if (text.trim() !== text || /[\p{Cc}\\]/u.test(text) || !text.isWellFormed()) {
    return fail('blank_or_control');
  }
  const split = SPLIT.exec(text);
  if (split === null) return fail(URL.canParse(text) ? 'not_https' : 'not_a_url');
  const [, authority = '', rest = ''] = split;
  if (authority.includes('@')) return fail('user_info');
  const parsed = URL.parse(text);
  if (parsed === null) return fail('not_a_url');
  if (parsed.port === '0') return fail('port_zero');
  const host = validateHost(parsed.hostname, allowNets);
  if (!host.ok) return host;
  const port = parsed.port === '' ? '' : `:${parsed.port}`;
  const normalised = `https://${host.value}${port}${rest}`;
  return isTooLong(normalised) ? fail('too_long') : ok(normalised);
}

/** One sentence for the owner. */
export function urlErrorMessage(error: UrlError): string {
  return MESSAGES[error];
}

const MESSAGES: Readonly<Record<UrlError, string>> = {
  not_a_url: 'url must be a valid URL',
  too_long: `url must have at most ${URL_MAX_CHARS} characters`,
  blank_or_control: 'url must not have blanks around it, control characters or backslashes',
  not_https: 'url must begin with https://',
  user_info: 'url must not carry a user name or password',
  port_zero: 'url must not name port 0',
  host_not_public: 'url must name a public host with its full domain name',
  address_not_public: 'url must not name a private, local or otherwise special address',
};

/** Scheme, authority and the rest. Stricter than the parser, which also accepts `https:host` and `https:///host`. */
const SPLIT = /^https:\/\/([^/?#]+)(.*)$/isu;

/** `hostname` as the parser leaves it: lower case, an IPv4 address dotted decimal, an IPv6 address in brackets. */
function validateHost(hostname: string, allowNets: CidrSet): Result<string, UrlError> {
  if (hostname.startsWith('[')) {
    const isSafe = parseSafeAddress(hostname.slice(1, -1), allowNets) !== null;
    return isSafe ? ok(hostname) : fail('address_not_public');
  }
  if (/^[0-9.]+$/.test(hostname)) {
    return parseSafeAddress(hostname, allowNets) === null ? fail('address_not_public') : ok(hostname);
  }
  const name = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
  if (name.length > MAX_HOST_CHARS || !name.split('.').every((label) => LABEL.test(label))) {
    return fail('host_not_public');
  }
  return allowNets.isEmpty && isLocalName(name) ? fail('host_not_public') : ok(name);
}

/** RFC 1123 section 2.1, and the underscore that some hosts have. */
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

function isLocalName(name: string): boolean {
  return !name.includes('.') || /\.(localhost|local|internal)$/.test(name);
}

/** Does not count all characters of a long text: a body may contain a megabyte of url. */
function isTooLong(text: string): boolean {
  return text.length > 2 * URL_MAX_CHARS || [...text].length > URL_MAX_CHARS;
}
