/**
 * An IP address with one spelling: `text` of equal addresses is equal (RFC 5952 for IPv6), so it serves as a key.
 * `bits` is 0 to 2^32-1; `groups` are the eight 16-bit numbers of an IPv6 address.
 */
export type IpAddress =
  | { readonly family: 4; readonly text: string; readonly bits: number }
  | { readonly family: 6; readonly text: string; readonly groups: readonly number[] };

const IPV6_GROUPS = 8;
/** The longest spelling: six groups of four digits and a dotted IPv4 tail. */
const MAX_CHARS = 45;
const MAX_PORT_CHARS = 5;

/**
 * Reads an address in its plain notation: dotted decimal without leading zeros, or RFC 4291 section 2.2. An IPv4
 * address mapped into IPv6 is the IPv4 address. Null for all else: zone ids, ports, brackets, blanks, octal, hex.
 */
export function parseIpAddress(text: string): IpAddress | null {
  if (text.length > MAX_CHARS) return null;
  if (!text.includes(':')) {
    const bits = parseIpv4Bits(text);
    return bits === null ? null : { family: 4, text, bits };
  }
  const groups = parseIpv6Groups(text);
  if (groups === null) return null;
  return isMapped(groups) ? fromBits(pair(groups, 6)) : { family: 6, text: formatIpv6(groups), groups };
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

function parseIpv4Bits(text: string): number | null {
  let bits = 0;
  let part = -1;
  let dots = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === DOT) {
      if (part < 0 || ++dots > 3) return null;
      bits = bits * 256 + part;
      part = -1;
    } else {
      const digit = code - ZERO;
      // A zero that leads: some parsers read the part as octal, so it means two addresses.
      if (digit < 0 || digit > 9 || part === 0) return null;
      part = part < 0 ? digit : part * 10 + digit;
      if (part > 255) return null;
    }
  }
  return dots === 3 && part >= 0 ? bits * 256 + part : null;
}

const DOT = 46;
const ZERO = 48;

function parseIpv6Groups(text: string): number[] | null {
  const gap = text.indexOf('::');
  if (gap < 0) {
    const all = parseGroups(text, true);
    return all?.length === IPV6_GROUPS ? all : null;
  }
  const tailText = text.slice(gap + 2);
  const head = gap === 0 ? [] : parseGroups(text.slice(0, gap), false);
  const tail = tailText === '' ? [] : parseGroups(tailText, true);
  if (head === null || tail === null) return null;
  const zeros = IPV6_GROUPS - head.length - tail.length;
  return zeros < 1 ? null : [...head, ...new Array<number>(zeros).fill(0), ...tail];
}

/** `a:b:c`, where the last part may be a dotted IPv4 address. */
function parseGroups(text: string, mayEndDotted: boolean): number[] | null {
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [i, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(Number.parseInt(part, 16));
      continue;
    }
    const bits = mayEndDotted && i === parts.length - 1 ? parseIpv4Bits(part) : null;
    if (bits === null) return null;
    groups.push(Math.floor(bits / 65_536), bits % 65_536);
  }
  return groups;
}

/** ::ffff:0:0/96 (RFC 4291 section 2.5.5.2), how a dual-stack socket names an IPv4 peer. */
function isMapped(groups: readonly number[]): boolean {
  return groups[5] === 0xffff && groups.every((group, i) => i >= 5 || group === 0);
}

function pair(groups: readonly number[], at: number): number {
  return (groups[at] as number) * 65_536 + (groups[at + 1] as number);
}

function fromBits(bits: number): IpAddress {
  const text = [bits / 2 ** 24, bits / 65_536, bits / 256, bits].map((n) => Math.floor(n) % 256).join('.');
  return { family: 4, text, bits };
}

/** RFC 5952 section 4: lower case, no leading zeros, the first longest run of two or more zero groups as `::`. */
export function formatIpv6(groups: readonly number[]): string {
  let runStart = -1;
  let runLength = 1;
  for (let i = 0; i < IPV6_GROUPS; i++) {
    let end = i;
    while (end < IPV6_GROUPS && groups[end] === 0) end++;
    if (end - i > runLength) [runStart, runLength] = [i, end - i];
    i = Math.max(i, end - 1);
  }
  const hex = groups.map((group) => group.toString(16));
  if (runStart < 0) return hex.join(':');
  return `${hex.slice(0, runStart).join(':')}::${hex.slice(runStart + runLength).join(':')}`;
}
