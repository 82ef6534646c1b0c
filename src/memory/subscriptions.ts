import { matches } from '../delivery/subscription.ts';
import type { Subscription, WebhookType } from '../delivery/webhookTypes.ts';

/** An active endpoint: whose it is, and what it wants. */
export interface ActiveEndpoint {
  readonly id: number;
  readonly worldId: number;
  readonly events: readonly Subscription[];
}

/** The active webhook endpoints by the world of their account. Kept by the follower of the change feed alone. */
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

  /** Holds what `loaded` holds, from one moment to the next; `loaded` is not to be used any more. */
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
