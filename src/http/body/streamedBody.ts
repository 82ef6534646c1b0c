import type { ServerResponse } from 'node:http';

/** The body of an answer that is too long to be made whole before it is read: made and sent piece by piece. */
export interface StreamedBody {
  /** Its length where that is known before it is made. */
  readonly bytes: number | null;
  /** How long its reader may take for what was handed over by one call of `next`; without it, as any connection. */
  readonly stallLimitMs?: number;
  /** Waits until it may begin. Rejects with Overloaded when too many wait already. */
  open(): Promise<void>;
  /** Makes the next piece and hands it over; false when it was the last. */
  next(take: (piece: Buffer) => void): Promise<boolean>;
  /** To be called once after `open`, whether all of it was taken or not. */
  close(): void;
}

/** What cannot be made whole any more, by no fault of this service: the connection is cut, and nothing is logged. */
export class CutAnswer extends Error {
  override name = 'CutAnswer';
}

/**
 * Sends a long body no faster than its reader takes it: each piece is made when the one before has been sent.
 * `writeHead` is called at the beginning. Resolves when all is sent or the reader has gone. An error of `open` rejects
 * before the head is written. After a later error the connection is cut, which shows the reader that the answer is
 * incomplete.
 */
export async function sendStreamed(
  response: ServerResponse,
  body: StreamedBody,
  writeHead: () => void,
): Promise<void> {
  await inTurnOn(response);
  await body.open();
  try {
    if (!isOpen(response)) return;
    writeHead();
    const take = (piece: Buffer) => {
      if (isOpen(response)) response.write(piece);
    };
    while (await body.next(take)) {
      if (response.writableNeedDrain) await drained(response, body.stallLimitMs);
      if (!isOpen(response)) return;
    }
    response.end();
  } catch (error) {
    response.destroy();
    if (!(error instanceof CutAnswer)) throw error;
  } finally {
    body.close();
  }
}

/** A request that came before the answer to another of its connection was sent waits for that one, holding nothing. */
function inTurnOn(response: ServerResponse): Promise<void> {
  if (response.socket !== null || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => response.once('socket', () => resolve()));
}

function isOpen(response: ServerResponse): boolean {
  return !response.destroyed && response.socket?.destroyed === false;
}

/** Cuts the connection when its reader takes longer than the limit. */
function drained(response: ServerResponse, limitMs?: number): Promise<void> {
  return new Promise((resolve) => {
    const limit = limitMs === undefined ? undefined : setTimeout(() => response.destroy(), limitMs);
    const go = () => {
      clearTimeout(limit);
      response.off('drain', go).off('close', go);
      resolve();
    };
    response.on('drain', go).on('close', go);
  });
}
