import { isIP } from 'node:net';
import type { CidrSet } from '../../access/cidrSet.ts';
import { type IpAddress, parseIpAddress } from '../../access/ipAddress.ts';
import { parseSafeAddress, parseSafeAnswer } from '../addressSafety.ts';
import type { Resolution, Resolve } from './resolveHost.ts';

/** The checked addresses that a delivery may connect to, at least one; or why there is none. */
export type Targets =
  | { readonly kind: 'addresses'; readonly addresses: readonly IpAddress[] }
  | { readonly kind: 'unsafe' }
  | { readonly kind: 'failed'; readonly error: 'timeout' | DnsError };

export type DnsError = Extract<Resolution, { kind: 'failed' }>['error'];

/**
 * The addresses of `hostname`, the host of a WHATWG URL. A literal is its own address, a localhost name means the
 * loopback, and any other name is resolved once. Every address is checked. `timeout` when the signal aborts first.
 */
export async function findTargets(
  hostname: string,
  allowNets: CidrSet,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<Targets> {
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(literal) !== 0) return check([parseSafeAddress(literal, allowNets)]);
  if (isLocalhost(hostname)) return check(allowedLoopbacks(allowNets));
  const resolution = await Promise.race([resolve(hostname, signal), timeout(signal)]);
  if (resolution.kind === 'failed') return resolution;
  if (resolution.addresses.length === 0) return { kind: 'failed', error: 'dns_not_found' };
  return check(resolution.addresses.map((address) => parseSafeAnswer(address, allowNets)));
}

/** All addresses must be safe: it must not matter which of them the connection uses. */
function check(addresses: readonly (IpAddress | null)[]): Targets {
  const safe = addresses.filter((address) => address !== null);
  const isSafe = safe.length > 0 && safe.length === addresses.length;
  return isSafe ? { kind: 'addresses', addresses: safe } : { kind: 'unsafe' };
}

/** RFC 6761 section 6.3: these names mean the loopback, and are not sent to a DNS server. */
function isLocalhost(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost');
}

function allowedLoopbacks(allowNets: CidrSet): IpAddress[] {
  return ['127.0.0.1', '::1']
    .map(parseIpAddress)
    .filter((address) => address !== null)
    .filter((address) => allowNets.has(address));
}

function timeout(signal: AbortSignal): Promise<Targets & { kind: 'failed' }> {
  return new Promise((resolve) => {
    const onAbort = () => resolve({ kind: 'failed', error: 'timeout' });
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}
