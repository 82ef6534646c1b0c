import type { ServerResponse } from 'node:http';

/** The body of an answer that is too long to be made whole before it is read: made and sent piece by piece. */
export interface LongBody {
  /** Its length where that is known before it is made. */
  readonly bytes: number | null;
  /** Waits until it may begin. Rejects with Overloaded when too many wait already. */
  open(): Promise<void>;
  /** Makes the next piece and hands it over; false when it was the last. */
  next(take: (piece: Buffer) => void): Promise<boolean>;
  /** To be called once after `open`, whether all of it was taken or not. */
  close(): void;
}

/**
 * Sends a long body no faster than its reader takes it: a piece is made when the one before has left. `writeHead` is
 * called when it begins. Resolves when all is sent or the reader has gone. Rejects before the head with what `open`
 * rejects with; later with what fails, and the connection is cut, by which a reader knows that the answer is not whole.
 */
export async function sendLong(
  response: ServerResponse,
  body: LongBody,
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
      if (response.writableNeedDrain) await drained(response);
      if (!isOpen(response)) return;
    }
    response.end();
  } catch (error) {
    response.destroy();
    throw error;
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

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      response.off('drain', go).off('close', go);
      resolve();
    };
    response.on('drain', go).on('close', go);
  });
}
