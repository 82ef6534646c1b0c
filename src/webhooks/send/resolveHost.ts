import { NODATA, NOTFOUND, Resolver } from 'node:dns/promises';

/** The addresses of a host name as text, at least one; or why there is none. */
export type Resolution =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  | { readonly kind: 'failed'; readonly error: 'dns_not_found' | 'dns_failed' };

/** Resolves a host name. Never rejects. May stop early when the signal aborts. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<Resolution>;

/** Per server and try. A second try waits twice as long, so a dead resolver fails within a delivery's deadline. */
const TRY_TIMEOUT_MS = 2_000;
const TRIES = 2;

/**
 * Asks DNS for A and AAAA at once, without the hosts file and without search domains. If only one of the two is
 * answered, its addresses are the answer. `servers` (address and port) replace those of the system.
 */
export async function resolveHost(
  hostname: string,
  signal: AbortSignal,
  servers?: readonly string[],
): Promise<Resolution> {
  // Its own resolver, because cancel() drops all open questions of a resolver.
  const resolver = new Resolver({ timeout: TRY_TIMEOUT_MS, tries: TRIES });
  if (servers) resolver.setServers(servers);
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  signal.removeEventListener('abort', cancel);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return { kind: 'addresses', addresses };
  const isAbsent = answers.every((answer) => answer.status === 'fulfilled' || isAbsentError(answer.reason));
  return { kind: 'failed', error: isAbsent ? 'dns_not_found' : 'dns_failed' };
}

function isAbsentError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === NODATA || error.code === NOTFOUND);
}
