import { invariant } from '../lib/errors.ts';
import { type ActiveEndpoint, matches, type WebhookType } from '../webhooks/delivery.ts';

interface Membership {
  readonly worldId: number;
  /** Null when the account belongs to no organization. */
  readonly organizationWorldId: number | null;
}

/**
 * Which worlds see which. An account sees its own world and that of its organization. So a private device is watched by
 * the areas of both, and a shared device by the areas of the organization and of every member.
 */
export class Tenancy {
  #accounts = new Map<number, Membership>();
  /** By the world of the account. */
  #organizationOf = new Map<number, number | null>();
  /** Worlds of the members by the world of their organization. The entry stays when the last member leaves. */
  #members = new Map<number, Set<number>>();
  /** Cached results of `watchersOf`, until a membership changes. */
  #watchers = new Map<number, readonly number[]>();

  /** Adds or updates an account. Its organization may have changed; its world never does. */
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

  /** Takes over the contents of `loaded` at once; `loaded` must not be used any more. */
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

  /** The worlds whose areas watch a device of this world, its own first. */
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

/** The active webhook endpoints by the world of their account. Only the follower of the change log changes them. */
export class Subscriptions {
  #byId = new Map<number, ActiveEndpoint>();
  #byWorld = new Map<number, Map<number, ActiveEndpoint>>();

  get size(): number {
    return this.#byId.size;
  }

  put(endpoint: ActiveEndpoint): void {
    this.remove(endpoint.id);
    this.#byId.set(endpoint.id, endpoint);
    const world = this.#byWorld.get(endpoint.worldId) ?? new Map();
    this.#byWorld.set(endpoint.worldId, world.set(endpoint.id, endpoint));
  }

  remove(id: number): void {
    const endpoint = this.#byId.get(id);
    if (endpoint === undefined) return;
    this.#byId.delete(id);
    const world = this.#byWorld.get(endpoint.worldId);
    world?.delete(id);
    if (world?.size === 0) this.#byWorld.delete(endpoint.worldId);
  }

  /** Takes over the contents of `loaded` at once; `loaded` must not be used any more. */
  adopt(loaded: Subscriptions): void {
    this.#byId = loaded.#byId;
    this.#byWorld = loaded.#byWorld;
  }

  /** The endpoints of these worlds that receive events of this type. */
  receivers(worldIds: readonly number[], type: WebhookType): number[] {
    const receivers: number[] = [];
    if (this.#byId.size === 0) return receivers;
    for (const worldId of worldIds) {
      for (const endpoint of this.#byWorld.get(worldId)?.values() ?? []) {
        if (matches(endpoint.events, type)) receivers.push(endpoint.id);
      }
    }
    return receivers;
  }
}
