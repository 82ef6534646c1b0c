import type { CidrSet } from '../access/cidrSet.ts';
import { fail, ok, type Result } from '../base/result.ts';
import { parseSafeAddress } from './addressSafety.ts';

/** Why a URL cannot be the one of a webhook. */
export type UrlFault =
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
 * The rule for webhook URLs at creation and update, without any look-up: https, at most 2048 characters, no user info,
 * no control characters, blanks around it or backslash, not port 0, the host a dotted public name or an allowed
 * address, whatever its spelling (decimal, octal, hex, percent-encoded, wide digits: the parser of the WHATWG URL
 * standard reads them all as the connection would). What lies in `allowNets` passes; when that is not empty, names
 * that are not public pass too and are judged by their addresses at delivery.
 * The value is the URL as sent with its host normalised: lower case, punycode, without one trailing dot.
 */
export function judgeWebhookUrl(text: string, allowNets: CidrSet): Result<string, UrlFault> {
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
  const host = judgeHost(parsed.hostname, allowNets);
  if (!host.ok) return host;
  const port = parsed.port === '' ? '' : `:${parsed.port}`;
  const normalised = `https://${host.value}${port}${rest}`;
  return isTooLong(normalised) ? fail('too_long') : ok(normalised);
}

/** One sentence for the owner. */
export function urlFaultMessage(fault: UrlFault): string {
  return MESSAGES[fault];
}

const MESSAGES: Readonly<Record<UrlFault, string>> = {
  not_a_url: 'url must be a valid URL',
  too_long: `url must have at most ${URL_MAX_CHARS} characters`,
  blank_or_control: 'url must not have blanks around it, control characters or backslashes',
  not_https: 'url must begin with https://',
  user_info: 'url must not carry a user name or password',
  port_zero: 'url must not name port 0',
  host_not_public: 'url must name a public host with its full domain name',
  address_not_public: 'url must not name a private, local or otherwise special address',
};

/** Scheme, authority and the rest: stricter than the parser, which also reads `https:host` and `https:///host`. */
const SPLIT = /^https:\/\/([^/?#]+)(.*)$/isu;

/** `hostname` as the parser leaves it: lower case, an IPv4 address dotted decimal, an IPv6 address in brackets. */
function judgeHost(hostname: string, allowNets: CidrSet): Result<string, UrlFault> {
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

/** Counts no further than it must: a body may hold a megabyte of url. */
function isTooLong(text: string): boolean {
  return text.length > 2 * URL_MAX_CHARS || [...text].length > URL_MAX_CHARS;
}
