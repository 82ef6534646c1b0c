import { type CidrSet, parseCidrs } from '../../access/cidrSet.ts';
import { type IpAddress, parseIpAddress } from '../../access/ipAddress.ts';
import { invariant } from '../../lib/invariant.ts';

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
