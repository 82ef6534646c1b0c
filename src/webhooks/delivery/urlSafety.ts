import { type CidrSet, type IpAddress, parseCidrs, parseIpAddress } from '../../access/ipAddress.ts';
import { invariant } from '../../lib/errors.ts';
import { fail, ok, type Result } from '../../lib/result.ts';

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
export const URL_ERROR_MESSAGES: Readonly<Record<UrlError, string>> = {
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

/**
 * True when the address is one of the public internet: in no block of the special-purpose registries (RFC 6890 and
 * its IANA registries, globally reachable entries included), not multicast, and for IPv6 inside 2000::/3. Mapped
 * addresses have no IpAddress of their own: use `parseSafeAddress` on text.
 */
export function isPublicAddress(address: IpAddress): boolean {
  if (address.family === 4) return !SPECIAL.has(address);
  return GLOBAL_UNICAST.has(address) && !SPECIAL.has(address);
}

/**
 * An address as text in its plain notation → the address when a webhook may be sent there, else null: it is public or
 * inside `allowNets`. An IPv4 address mapped into IPv6 (::ffff:0:0/96) is never public; as part of `allowNets` it is
 * its IPv4 address.
 */
export function parseSafeAddress(text: string, allowNets: CidrSet): IpAddress | null {
  const address = parseIpAddress(text);
  if (address === null) return null;
  const isMapped = address.family === 4 && text.includes(':');
  return allowNets.has(address) || (!isMapped && isPublicAddress(address)) ? address : null;
}

/**
 * An address that DNS answered → the address to connect to, or null when it is unsafe. As parseSafeAddress, but a
 * translated one (64:ff9b::/96, RFC 6052) is decided by the IPv4 address inside: a DNS64 resolver makes it of every
 * public A record.
 */
export function parseSafeAnswer(text: string, allowNets: CidrSet): IpAddress | null {
  const address = parseIpAddress(text);
  const inside = address === null ? null : translated(address);
  if (inside === null) return parseSafeAddress(text, allowNets);
  return parseSafeAddress(inside, allowNets) === null ? null : address;
}

/** The IPv4 address, dotted, inside an address of the well-known translation prefix; null for all others. */
function translated(address: IpAddress): string | null {
  if (address.family === 4 || !TRANSLATION.has(address)) return null;
  const [high = 0, low = 0] = address.groups.slice(6);
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

const GLOBAL_UNICAST = blocks('2000::/3');
const TRANSLATION = blocks('64:ff9b::/96');

const SPECIAL = blocks(
  // IANA IPv4 Special-Purpose Address Registry
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private use
  '100.64.0.0/10', // shared address space (carrier-grade NAT)
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local, and where clouds answer metadata
  '172.16.0.0/12', // private use
  '192.0.0.0/24', // IETF protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private use
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast (RFC 5771)
  '240.0.0.0/4', // reserved, and the limited broadcast
  // IANA IPv6 Special-Purpose Address Registry: the blocks within 2000::/3
  '2001::/23', // IETF protocol assignments: Teredo, ORCHID, benchmarking …
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
);

function blocks(...cidrs: string[]): CidrSet {
  const set = parseCidrs(cidrs.join(','));
  invariant(set.ok, 'the tables hold CIDR blocks only');
  return set.value;
}
