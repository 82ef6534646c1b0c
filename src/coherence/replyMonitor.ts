import { DeadlineExceeded } from '../lib/deadline.ts';
import type { AwaitReply } from './applyChanges.ts';

/**
 * Waiting is counted in ticks of this process. Time in which the process itself did not run (it was stopped, or busy
 * with something else) is one tick, so it does not count as a missing reply.
 */
const TICK_MS = 250;
const UNRESPONSIVE_TICKS = 8;
/** After this the query is given up, so that the next one can use another connection. */
const GIVE_UP_TICKS = 40;

/** Knows whether Postgres replies, from the queries that are awaited through it. */
export class ReplyMonitor {
  #isUnresponsive = false;

  /** True after two seconds without a reply, until there is one. Meanwhile it makes no sense to wait for Postgres. */
  get isUnresponsive(): boolean {
    return this.#isUnresponsive;
  }

  /** Awaits the reply to a query, for ten seconds at most; then rejects with DeadlineExceeded. */
  readonly awaitReply: AwaitReply = (reply) =>
    new Promise((resolve, reject) => {
      let ticks = 0;
      let isOver = false;
      const ticking = setInterval(() => {
        ticks++;
        // The reply may wait in a socket: sockets are read once before this tick counts.
        setImmediate(check);
      }, TICK_MS);
      const end = (): void => {
        clearInterval(ticking);
        isOver = true;
      };
      const check = (): void => {
        if (isOver || ticks < UNRESPONSIVE_TICKS) return;
        this.#isUnresponsive = true;
        if (ticks < GIVE_UP_TICKS) return;
        end();
        reject(new DeadlineExceeded('Postgres did not answer'));
      };
      const noteReply = (): void => {
        // A reply to a query that was given up says nothing about the present one.
        if (!isOver) this.#isUnresponsive = false;
        end();
      };
      reply.finally(noteReply).then(resolve, reject);
    });
}
