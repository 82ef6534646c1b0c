import { formatIpv6, type IpAddress } from './ipAddress.ts';

/** How many of the eight groups of an IPv6 address name a customer's network. */
const NETWORK_GROUPS = 4;
const NO_HOST = [0, 0, 0, 0];

/**
 * What an address is counted by, with one spelling for each: an IPv4 address itself, the /64 of an IPv6 address
 * (`2001:db8::/64`). One customer of a provider has 2^64 addresses of IPv6 or more (RFC 6177 section 2), so to count
 * them one by one would limit nobody.
 */
export function addressNetwork(address: IpAddress): string {
  if (address.family === 4) return address.text;
  return `${formatIpv6([...address.groups.slice(0, NETWORK_GROUPS), ...NO_HOST])}/64`;
}
