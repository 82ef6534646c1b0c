import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * An IP address with one spelling: `text` of equal addresses is equal (RFC 5952 for IPv6), so it serves as a key.
 * `bits` is 0 to 2^32-1; `groups` are the eight 16-bit numbers of an IPv6 address.
 */
export type IpAddress =
  | { readonly family: 4; readonly text: string; readonly bits: number }
  | { readonly family: 6; readonly text: string; readonly groups: readonly number[] };

const MAX_PORT_CHARS = 5;

/**
 * Parses an address in its plain notation: dotted decimal without leading zeros, or RFC 4291 section 2.2. An IPv4
 * address mapped into IPv6 becomes the IPv4 address. Null for everything else: zone ids, ports, brackets, blanks,
 * octal, hex. The system decides what is valid; ipaddr.js alone would also take octal and zone ids.
 */
export function parseIpAddress(text: string): IpAddress | null {
  if (isIPv4(text)) return fromDotted(text);
  if (!isIPv6(text) || text.includes('%')) return null;
  const address = ipaddr.IPv6.parse(withHexTail(text));
  return address.isIPv4MappedAddress()
    ? fromDotted(address.toIPv4Address().toString())
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

function fromDotted(text: string): IpAddress {
  return { family: 4, text, bits: bitsOf(text) };
}

/** The bits of a valid dotted address. Every call of the API is counted by one, so this allocates nothing. */
function bitsOf(dotted: string): number {
  let bits = 0;
  let octet = 0;
  for (let i = 0; i < dotted.length; i++) {
    const code = dotted.charCodeAt(i);
    if (code === DOT) {
      bits = bits * 256 + octet;
      octet = 0;
    } else octet = octet * 10 + code - ZERO;
  }
  return bits * 256 + octet;
}

const DOT = 46;
const ZERO = 48;

/** A dotted tail as two groups: ipaddr.js reads ::1.2.3.4 as the mapped ::ffff:1.2.3.4, which is another address. */
function withHexTail(text: string): string {
  const tailAt = text.lastIndexOf(':') + 1;
  const tail = text.slice(tailAt);
  if (!tail.includes('.')) return text;
  const bits = bitsOf(tail);
  return `${text.slice(0, tailAt)}${(bits >>> 16).toString(16)}:${(bits & 0xffff).toString(16)}`;
}
