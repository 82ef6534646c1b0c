import type { IpAddress } from './ipAddress.ts';

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
