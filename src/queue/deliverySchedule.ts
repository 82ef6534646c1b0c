/**
 * When to look at which endpoint: a wake-up, never the truth. It may forget and it may wake twice; a sweeper tells it
 * again what Postgres knows.
 */
export interface DeliverySchedule {
  /** Wakes for an endpoint in so many milliseconds, or earlier if that was asked before. */
  add(webhookId: number, dueInMs: number): Promise<void>;
  /** Up to `limit` endpoints that are due, which are then forgotten; the longest due first. */
  take(limit: number): Promise<number[]>;
}

/** The schedule of a single process. */
export class LocalDeliverySchedule implements DeliverySchedule {
  /** By performance.now(), which no setting of the clock touches. */
  readonly #dueAtMs = new Map<number, number>();

  async add(webhookId: number, dueInMs: number): Promise<void> {
    const dueAtMs = performance.now() + dueInMs;
    const known = this.#dueAtMs.get(webhookId);
    if (known === undefined || dueAtMs < known) this.#dueAtMs.set(webhookId, dueAtMs);
  }

  async take(limit: number): Promise<number[]> {
    const nowMs = performance.now();
    const due = [...this.#dueAtMs].filter(([, dueAtMs]) => dueAtMs <= nowMs);
    const taken = due.sort(([, a], [, b]) => a - b).slice(0, limit);
    for (const [webhookId] of taken) this.#dueAtMs.delete(webhookId);
    return taken.map(([webhookId]) => webhookId);
  }
}
