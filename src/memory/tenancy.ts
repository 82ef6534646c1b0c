import { invariant } from '../base/invariant.ts';

interface Membership {
  readonly worldId: number;
  /** Null when the account belongs to no organization. */
  readonly organizationWorldId: number | null;
}

/**
 * Which worlds see which. An account sees its own world and its organization's, so a private device is watched by
 * the areas of both, and a shared device by those of the organization and of every member.
 */
export class Tenancy {
  #accounts = new Map<number, Membership>();
  /** By the world of the account. */
  #organizationOf = new Map<number, number | null>();
  /** Worlds of the members by the world of their organization; it stays when the last member leaves. */
  #members = new Map<number, Set<number>>();
  /** Answers of `watchersOf`, one for each world at most, until a membership changes. */
  #watchers = new Map<number, readonly number[]>();

  /** An account as it is now; may be told again, and may have moved to another organization. Its world stays. */
  putAccount(accountId: number, accountWorldId: number, organizationWorldId: number | null): void {
    const before = this.#accounts.get(accountId);
    invariant(before === undefined || before.worldId === accountWorldId, 'an account keeps its world');
    if (before?.organizationWorldId === organizationWorldId) return;
    if (before !== undefined) this.#leave(before);
    this.#accounts.set(accountId, { worldId: accountWorldId, organizationWorldId });
    this.#organizationOf.set(accountWorldId, organizationWorldId);
    this.#watchers.delete(accountWorldId);
    if (organizationWorldId === null) return;
    const members = this.#members.get(organizationWorldId) ?? new Set();
    this.#members.set(organizationWorldId, members.add(accountWorldId));
    this.#watchers.delete(organizationWorldId);
  }

  /** Holds what `loaded` holds, from one moment to the next; `loaded` is not to be used any more. */
  adopt(loaded: Tenancy): void {
    this.#accounts = loaded.#accounts;
    this.#organizationOf = loaded.#organizationOf;
    this.#members = loaded.#members;
    this.#watchers = loaded.#watchers;
  }

  /** True for the world of an organization that has, or had, a member. */
  isShared(worldId: number): boolean {
    return this.#members.has(worldId);
  }

  /** The worlds whose areas watch a device of this world; its own is the first. */
  watchersOf(deviceWorldId: number): readonly number[] {
    const known = this.#watchers.get(deviceWorldId);
    if (known !== undefined) return known;
    const organizationWorldId = this.#organizationOf.get(deviceWorldId) ?? null;
    const members = this.#members.get(deviceWorldId) ?? [];
    const others = organizationWorldId === null ? [...members].sort((a, b) => a - b) : [organizationWorldId];
    const watchers = [deviceWorldId, ...others];
    this.#watchers.set(deviceWorldId, watchers);
    return watchers;
  }

  #leave({ worldId, organizationWorldId }: Membership): void {
    if (organizationWorldId === null) return;
    this.#members.get(organizationWorldId)?.delete(worldId);
    this.#watchers.delete(organizationWorldId);
  }
}
