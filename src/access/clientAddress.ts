import type { CidrSet } from './cidrSet.ts';
import { type IpAddress, parseForwardedHop, parseIpAddress } from './ipAddress.ts';

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
const NOWHERE: IpAddress = { family: 4, text: '0.0.0.0', bits: 0 };

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
