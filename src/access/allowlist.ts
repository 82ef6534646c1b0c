import { fail, ok, type Result } from '../lib/result.ts';
import { CidrSet, parseNetwork } from './cidrSet.ts';
import type { IpAddress } from './ipAddress.ts';

/** The addresses a key may be used from. */
export class Allowlist {
  readonly #networks: CidrSet;

  constructor(networks: CidrSet) {
    this.#networks = networks;
  }

  /** True when every address is allowed. */
  get isEmpty(): boolean {
    return this.#networks.isEmpty;
  }

  /** True for an address on the list, and for every address when the list is empty. Allocates nothing. */
  matches(address: IpAddress): boolean {
    return this.#networks.isEmpty || this.#networks.has(address);
  }
}

/** `bad_entry` names an entry by its index; `too_many` says how many there were. */
export type AllowlistError =
  | { readonly kind: 'too_many'; readonly count: number }
  | { readonly kind: 'bad_entry'; readonly index: number };

export const ALLOWLIST_MAX_ENTRIES = 50;

/** Reads up to 50 entries: an IPv4 address, an IPv4 block in CIDR notation, or an exact IPv6 address. */
export function parseAllowlist(entries: readonly string[]): Result<Allowlist, readonly AllowlistError[]> {
  if (entries.length > ALLOWLIST_MAX_ENTRIES) return fail([{ kind: 'too_many', count: entries.length }]);
  const networks = entries.map((entry) => (isIpv6Block(entry) ? null : parseNetwork(entry)));
  const errors = networks.flatMap((network, index) =>
    network === null ? [{ kind: 'bad_entry' as const, index }] : [],
  );
  if (errors.length > 0) return fail(errors);
  return ok(new Allowlist(new CidrSet(networks.filter((network) => network !== null))));
}

function isIpv6Block(entry: string): boolean {
  return entry.includes(':') && entry.includes('/');
}
