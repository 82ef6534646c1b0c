import { ALL_TYPES, type Subscription, type WebhookType } from './message.ts';

/** An active webhook endpoint: its owner's world, and the event types it receives. */
export interface ActiveEndpoint {
  readonly id: number;
  readonly worldId: number;
  readonly events: readonly Subscription[];
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

/** True when an endpoint with these `events` receives this type: its list has the type itself or the wildcard. */
export function matches(events: readonly string[], type: WebhookType): boolean {
  return events.includes(type) || events.includes(ALL_TYPES);
}
