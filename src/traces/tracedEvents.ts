import { HOUR_MS } from '../lib/time.ts';
import { TokenBuckets } from './sampling.ts';
import { parseTraceparent, type RemoteParent } from './traceparent.ts';

/** Events that are remembered; the oldest is forgotten first. */
const EVENTS_MAX = 10_000;
/** A retry after this time begins a trace of its own. */
const REMEMBERED_MS = HOUR_MS;
/**
 * Events of one world that are remembered and told: a batch of points in one trace may bring thousands, whose deliveries
 * would fill the queue of spans and this memory. Those beyond are recorded by chance, like deliveries of no known trace.
 */
export const EVENTS_OF_WORLD = { perSecond: 20, burst: 200, keysMax: 10_000 };
/** Events whose trace a pod tells the others. The trace of further ones is known to it alone. */
const TOLD = { perSecond: 100, burst: 1_000, keysMax: 1 };

/** Sends the text to the other pods, which may not receive it. */
export type Tell = (text: string) => void;

/**
 * The traces of points by the events that they produced, so that deliveries of these events belong to them. It is in the
 * memory of pods and not in the database, where every point would pay for it. A pod that delivers learns of it from the
 * one that took the point, before the commit.
 */
export class TracedEvents {
  readonly #byEvent = new Map<string, { readonly parent: RemoteParent; readonly untilMs: number }>();
  readonly #ofWorld = new TokenBuckets(EVENTS_OF_WORLD);
  readonly #told = new TokenBuckets(TOLD);
  readonly #tell: Tell;

  constructor(tell: Tell) {
    this.#tell = tell;
  }

  note(eventId: string, traceparent: string, worldId: number): void {
    const nowMs = performance.now();
    if (!this.#ofWorld.take(worldId, nowMs)) return;
    this.#remember(eventId, traceparent);
    if (this.#told.take(0, nowMs)) this.#tell(`${eventId} ${traceparent}`);
  }

  /** What another pod has told. */
  hear(text: string): void {
    const [eventId = '', traceparent = ''] = text.split(' ', 2);
    this.#remember(eventId, traceparent);
  }

  find(eventId: string): RemoteParent | null {
    const known = this.#byEvent.get(eventId);
    return known === undefined || known.untilMs < performance.now() ? null : known.parent;
  }

  #remember(eventId: string, traceparent: string): void {
    const parent = parseTraceparent(traceparent);
    if (parent === null) return;
    this.#byEvent.delete(eventId);
    this.#byEvent.set(eventId, { parent, untilMs: performance.now() + REMEMBERED_MS });
    const [oldest] = this.#byEvent.keys();
    if (this.#byEvent.size > EVENTS_MAX && oldest !== undefined) this.#byEvent.delete(oldest);
  }
}
