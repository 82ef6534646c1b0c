import { BlockList, isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { fail, ok, type Result } from '../lib/result.ts';

/**
 * An IP address with one spelling: `text` of equal addresses is equal (RFC 5952 for IPv6), so it serves as a key.
 * `groups` are the eight 16-bit numbers of an IPv6 address.
 */
export type IpAddress =
  | { readonly family: 4; readonly text: string }
  | { readonly family: 6; readonly text: string; readonly groups: readonly number[] };

const MAX_PORT_CHARS = 5;

/**
 * Parses an address in its plain notation: dotted decimal without leading zeros, or RFC 4291 section 2.2. An IPv4
 * address mapped into IPv6 becomes the IPv4 address. Null for everything else: zone ids, ports, brackets, blanks,
 * octal, hex. The system decides what is valid; ipaddr.js alone would also take octal and zone ids.
 */
export function parseIpAddress(text: string): IpAddress | null {
  if (isIPv4(text)) return { family: 4, text };
  if (!isIPv6(text) || text.includes('%')) return null;
  const address = ipaddr.IPv6.parse(withHexTail(text));
  return address.isIPv4MappedAddress()
    ? { family: 4, text: address.toIPv4Address().toString() }
    : { family: 6, text: address.toRFC5952String(), groups: address.parts };
}

/** Reads one entry of X-Forwarded-For, where proxies also write `1.2.3.4:5678`, `[::1]` and `[::1]:443`. */
export function parseForwardedHop(text: string): IpAddress | null {
  if (text.startsWith('[')) {
    const end = text.indexOf(']');
    const rest = text.slice(end + 1);
    if (end < 0 || !(rest === '' || (rest.startsWith(':') && isPort(rest.slice(1))))) return null;
    const inner = text.slice(1, end);
    return inner.includes(':') ? parseIpAddress(inner) : null;
  }
  const colon = text.indexOf(':');
  const hasPort = colon > 0 && colon === text.lastIndexOf(':') && isPort(text.slice(colon + 1));
  return parseIpAddress(hasPort ? text.slice(0, colon) : text);
}

function isPort(text: string): boolean {
  return text.length <= MAX_PORT_CHARS && /^[0-9]+$/.test(text) && Number(text) <= 65_535;
}

/** A dotted tail as two groups: ipaddr.js reads ::1.2.3.4 as the mapped ::ffff:1.2.3.4, which is another address. */
function withHexTail(text: string): string {
  const tailAt = text.lastIndexOf(':') + 1;
  const tail = text.slice(tailAt);
  if (!tail.includes('.')) return text;
  const [a = 0, b = 0, c = 0, d = 0] = tail.split('.').map(Number);
  return `${text.slice(0, tailAt)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

/** An address block: every address whose first `prefixLength` bits are those of `address`. */
export interface Network {
  readonly address: IpAddress;
  readonly prefixLength: number;
}

/** Address blocks of both families. */
export class CidrSet {
  /** Apart, since a BlockList finds IPv4 addresses in IPv6 blocks that hold the mapped ones. */
  readonly #v4 = new BlockList();
  readonly #v6 = new BlockList();
  readonly isEmpty: boolean;

  /** Bits beyond a prefix are ignored: 10.1.2.3/8 is 10.0.0.0/8. */
  constructor(networks: readonly Network[]) {
    this.isEmpty = networks.length === 0;
    for (const { address, prefixLength } of networks) {
      if (address.family === 4) this.#v4.addSubnet(address.text, prefixLength, 'ipv4');
      else this.#v6.addSubnet(address.text, prefixLength, 'ipv6');
    }
  }

  has({ family, text }: IpAddress): boolean {
    return family === 4 ? this.#v4.check(text, 'ipv4') : this.#v6.check(text, 'ipv6');
  }
}

/**
 * Reads a comma list of CIDR blocks and addresses of both families (blanks around a comma are fine); empty text is
 * the empty set. The error lists the entries that are neither, `true` and host names among them.
 */
export function parseCidrs(text: string): Result<CidrSet, readonly string[]> {
  if (text.trim() === '') return ok(new CidrSet([]));
  const entries = text.split(',').map((entry) => entry.trim());
  const networks = entries.map(parseNetwork);
  const bad = entries.filter((_, i) => networks[i] === null);
  return bad.length > 0 ? fail(bad) : ok(new CidrSet(networks.filter((network) => network !== null)));
}

/** An address, or an address with `/` and a decimal prefix length. A block of mapped addresses is its IPv4 block. */
export function parseNetwork(text: string): Network | null {
  const slash = text.indexOf('/');
  const addressText = slash < 0 ? text : text.slice(0, slash);
  const address = parseIpAddress(addressText);
  if (address === null) return null;
  const length = address.family === 4 ? 32 : 128;
  if (slash < 0) return { address, prefixLength: length };
  const lengthText = text.slice(slash + 1);
  if (!/^(0|[1-9][0-9]{0,2})$/.test(lengthText)) return null;
  const isMapped = address.family === 4 && addressText.includes(':');
  const prefixLength = Number(lengthText) - (isMapped ? 96 : 0);
  return prefixLength >= 0 && prefixLength <= length ? { address, prefixLength } : null;
}

/** `bad_entry` names an entry by its index; `too_many` says how many there were. */
type AllowlistError =
  | { readonly kind: 'too_many'; readonly count: number }
  | { readonly kind: 'bad_entry'; readonly index: number };

export const ALLOWLIST_MAX_ENTRIES = 50;

/**
 * Reads the addresses that a key may be used from; null when there are none, which allows every address. An entry is an
 * IPv4 address, an IPv4 block in CIDR notation, or an exact IPv6 address.
 */
export function parseAllowlist(
  entries: readonly string[],
): Result<CidrSet | null, readonly AllowlistError[]> {
  if (entries.length > ALLOWLIST_MAX_ENTRIES) return fail([{ kind: 'too_many', count: entries.length }]);
  const networks = entries.map((entry) => (isIpv6Block(entry) ? null : parseNetwork(entry)));
  const errors = networks.flatMap((network, index) =>
    network === null ? [{ kind: 'bad_entry' as const, index }] : [],
  );
  if (errors.length > 0) return fail(errors);
  return ok(networks.length === 0 ? null : new CidrSet(networks.filter((network) => network !== null)));
}

function isIpv6Block(entry: string): boolean {
  return entry.includes(':') && entry.includes('/');
}

/**
 * Whose call this is. Not `certain`: the caller is unknown, and `address` is the nearest known address. Calls may be
 * counted by it, but nobody may be authorized by it.
 */
export interface ClientAddress {
  readonly address: IpAddress;
  readonly certain: boolean;
  /** What its calls are counted by (see addressNetwork). */
  readonly network: string;
}

/** More trusted proxies in a row than any real chain has; a longer chain is not followed to its end. */
const MAX_HOPS = 16;

/** Used for callers whose address is unknown because the connection is gone. All of them count as one caller. */
const NOWHERE: IpAddress = { family: 4, text: '0.0.0.0' };

/**
 * The caller behind the trusted proxies. Each proxy appends the address it was called from to X-Forwarded-For, so
 * the header is read from its right end, and only as far as its addresses are trusted: anyone may have written
 * the entries further left. Without trusted proxies the header is ignored.
 *
 * @param socketAddress the peer as the socket names it
 * @param forwardedFor all X-Forwarded-For headers of the request, joined by commas in their order
 */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | undefined,
  trusted: CidrSet,
): ClientAddress {
  const peer = parseSocketAddress(socketAddress);
  if (peer === null) return client(NOWHERE, false);
  let address = peer;
  let rest = forwardedFor ?? '';
  for (let hops = 0; rest !== '' && trusted.has(address); hops++) {
    const comma = rest.lastIndexOf(',');
    const hop = hops < MAX_HOPS ? parseForwardedHop(trimBlanks(rest.slice(comma + 1))) : null;
    if (hop === null) return client(address, false);
    address = hop;
    rest = rest.slice(0, Math.max(comma, 0));
  }
  return client(address, true);
}

function client(address: IpAddress, certain: boolean): ClientAddress {
  return { address, certain, network: addressNetwork(address) };
}

/** The system adds the zone to a link-local peer (`fe80::1%eth0`), but the zone does not belong to the address. */
function parseSocketAddress(text: string | undefined): IpAddress | null {
  if (text === undefined) return null;
  const zone = text.indexOf('%');
  return parseIpAddress(zone < 0 ? text : text.slice(0, zone));
}

/** RFC 9110 section 5.6.3 allows only spaces and tabs around a list element. trim() would remove far more. */
function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}

/** How many of the eight groups of an IPv6 address name a customer's network. */
const NETWORK_GROUPS = 4;

/**
 * What an address is counted by, with one spelling for each: an IPv4 address itself, the /64 of an IPv6 address
 * (`2001:db8::/64`). One customer of a provider has 2^64 addresses of IPv6 or more (RFC 6177 section 2), so counting
 * them one by one would limit nobody.
 */
export function addressNetwork(address: IpAddress): string {
  if (address.family === 4) return address.text;
  let end = NETWORK_GROUPS;
  while (end > 0 && address.groups[end - 1] === 0) end--;
  const groups = address.groups.slice(0, end).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}
