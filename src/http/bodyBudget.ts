import type { IncomingMessage } from 'node:http';
import { ByteBudget, type Reservation } from '../lib/byteBudget.ts';
import { Overloaded } from '../lib/fairSemaphore.ts';
import { declaredBytes, readBody, UnreadableBody } from './readBody.ts';

const KB = 1024;
const MB = 1024 * KB;

/** Bodies up to this size have a budget of their own, so none of them ever waits behind a large one. */
const SMALL_BYTES = 64 * KB;
const SMALL = { bytes: 64 * MB, bytesPerKey: 16 * MB, waitingPerKey: 1_000 };
/** A share takes two of the largest bodies that there are, or one with what it unpacks to. */
const LARGE = { bytes: 256 * MB, bytesPerKey: 64 * MB, waitingPerKey: 200 };
/** Less than the time in which a request must be there, so that whoever waits still gets the reason. */
const WAIT_LIMIT_MS = 45_000;

/** Whose share a body is counted against: an account, or the network of a caller who is not known. */
export type BodyOwner = number | string;

/** A body in memory. `release` says that nobody looks at it any more. */
export interface HeldBody {
  readonly pieces: readonly Buffer[];
  release(): void;
}

/**
 * Reads bodies within one budget of bytes for the pod and one for each caller. Beyond the budget, connections are not
 * read, so bodies wait with their senders. The bytes are returned when the body is released, or when reading ends
 * early: the client hangs up, is too slow, or sends something invalid.
 */
export class BodyBudget {
  readonly #small = new ByteBudget<BodyOwner>(SMALL);
  readonly #large = new ByteBudget<BodyOwner>(LARGE);

  /** Held at a time, of all callers together. */
  get heldBytes(): number {
    return this.#small.heldBytes + this.#large.heldBytes;
  }

  /** Bodies that wait for room. */
  get waiting(): number {
    return this.#small.waiting + this.#large.waiting;
  }

  /** Rejects as readBody does, and with Overloaded when there was no room in time. */
  async read(request: IncomingMessage, owner: BodyOwner, maxBytes: number): Promise<HeldBody> {
    const held: Reservation[] = [];
    const release = (): void => {
      for (const reservation of held) reservation.release();
    };
    const take = async (budget: ByteBudget<BodyOwner>, bytes: number): Promise<void> => {
      held.push(await reserve(budget, owner, bytes, request));
    };
    try {
      const freeBytes = Math.min(SMALL_BYTES, maxBytes);
      await take(this.#small, Math.min(declaredBytes(request) ?? freeBytes, freeBytes));
      const more = (bytes: number) => take(this.#large, bytes);
      const pieces = await readBody(request, { maxBytes, freeBytes, more });
      held[1]?.keep(pieces.reduce((sum, { length }) => sum + length, 0));
      return { pieces, release };
    } catch (error) {
      release();
      request.resume(); // the connection goes on
      throw error;
    }
  }
}

async function reserve(
  budget: ByteBudget<BodyOwner>,
  owner: BodyOwner,
  bytes: number,
  request: IncomingMessage,
): Promise<Reservation> {
  const waiting = new AbortController();
  const giveUp = (): void => waiting.abort(new UnreadableBody(400, 'the client gave up'));
  const timer = setTimeout(
    () => waiting.abort(new Overloaded('too many bodies are being read')),
    WAIT_LIMIT_MS,
  );
  // A request that is there as a whole closes in any case; whether its client is still there is not looked at.
  if (!request.complete) request.once('close', giveUp);
  try {
    return await budget.reserve(owner, bytes, waiting.signal);
  } finally {
    clearTimeout(timer);
    request.off('close', giveUp);
  }
}
