import { fail, ok, type Result } from '../lib/result.ts';
import { type IpAddress, parseIpAddress } from './ipAddress.ts';

/** An address block: every address whose first `prefixLength` bits are those of `address`. */
export interface Network {
  readonly address: IpAddress;
  readonly prefixLength: number;
}

/** Address blocks of both families, asked on every request: `has` allocates nothing. */
export class CidrSet {
  readonly #v4Networks: Int32Array;
  readonly #v4Masks: Int32Array;
  readonly #v6: readonly { readonly groups: readonly number[]; readonly prefixLength: number }[];

  /** Bits beyond a prefix are ignored: 10.1.2.3/8 is 10.0.0.0/8. */
  constructor(networks: readonly Network[]) {
    const v4 = networks.flatMap(({ address, prefixLength }) =>
      address.family === 4 ? [{ bits: address.bits, mask: v4Mask(prefixLength) }] : [],
    );
    this.#v4Masks = Int32Array.from(v4, ({ mask }) => mask);
    this.#v4Networks = Int32Array.from(v4, ({ bits, mask }) => bits & mask);
    this.#v6 = networks.flatMap(({ address, prefixLength }) =>
      address.family === 6 ? [{ groups: address.groups, prefixLength }] : [],
    );
  }

  get isEmpty(): boolean {
    return this.#v4Masks.length === 0 && this.#v6.length === 0;
  }

  has(address: IpAddress): boolean {
    if (address.family === 4) {
      for (let i = 0; i < this.#v4Masks.length; i++) {
        if ((address.bits & (this.#v4Masks[i] as number)) === this.#v4Networks[i]) return true;
      }
      return false;
    }
    for (const network of this.#v6) {
      if (sharesPrefix(address.groups, network.groups, network.prefixLength)) return true;
    }
    return false;
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

function v4Mask(prefixLength: number): number {
  // A shift by 32 shifts by nothing.
  return prefixLength === 0 ? 0 : (-1 << (32 - prefixLength)) | 0;
}

function sharesPrefix(a: readonly number[], b: readonly number[], prefixLength: number): boolean {
  const whole = prefixLength >> 4;
  for (let i = 0; i < whole; i++) if (a[i] !== b[i]) return false;
  const rest = prefixLength & 15;
  return rest === 0 || ((a[whole] as number) ^ (b[whole] as number)) >> (16 - rest) === 0;
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
