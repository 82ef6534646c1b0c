import type { IncomingMessage } from 'node:http';
import { isSmallBody, readPieces, restRead } from '../http/readBody.ts';
import type { FairSemaphore } from '../lib/fairSemaphore.ts';
import { parseJsonText } from '../lib/parseJson.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import type { Steps, WorkTurns } from '../lib/workTurns.ts';
import { type Batch, type BatchError, BatchReader, hasMoreValues } from './formats/batchReader.ts';

/** A batch; what else is sent is one position. */
const MAX_BATCH_BYTES = 16 * 1024 * 1024;
const MAX_POSITION_BYTES = 64 * 1024;
/** A position that Traccar forwards has up to two hundred values. This many are built in a millisecond. */
const MAX_POSITION_VALUES = 2_000;
/** Up to here a body is read at once, whatever it holds, and waits for nobody. */
const SMALL_BYTES = 16 * 1024;

/**
 * How many bodies beyond SMALL_BYTES are read side by side. Nothing is kept of a body but its points, 8 MB at most for
 * the 10 000 of one; the bodies that wait stay with their senders.
 */
export const BODY_SLOTS = { running: 16, runningPerKey: 8, waiting: 512, waitingPerKey: 256 } as const;

/** Forms are read before it is known who sends them: they have slots of their own, and take none from a sender. */
export interface BodySlots {
  readonly known: FairSemaphore<string>;
  readonly forms: FairSemaphore<string>;
}

/** Reads bodies of the ingest listener, fair by network, in steps that hold up nobody. */
export class IngestBodies {
  readonly #turns: WorkTurns<string | number>;
  readonly #slots: BodySlots;

  constructor(turns: WorkTurns<string | number>, slots: BodySlots) {
    this.#turns = turns;
    this.#slots = slots;
  }

  /** The batch that a body carries. Rejects like readPieces, and with Overloaded. */
  async readBatch(
    request: IncomingMessage,
    network: string,
    window: { readonly nowMs: number; readonly oldestMs: number },
  ): Promise<Result<Batch, BatchError>> {
    const format = NDJSON_TYPE.test(request.headers['content-type'] ?? '') ? 'ndjson' : 'json';
    const reader = new BatchReader(format, window.nowMs, window.oldestMs);
    const read = (piece: Buffer) =>
      reader.hasFailed ? undefined : this.inTurns(network, reader.read(piece));
    if (isSmallBody(request, SMALL_BYTES)) {
      await readToEnd(request, SMALL_BYTES, (piece) => {
        for (const _ of reader.read(piece)); // at once
      });
    } else {
      await this.#slots.known.run(network, () => readToEnd(request, MAX_BATCH_BYTES, read));
    }
    return reader.finish();
  }

  /** The bytes of a body that carries one position, of a sender who is known. Rejects like readBatch. */
  readPosition(request: IncomingMessage, network: string): Promise<Buffer> {
    return this.#readWhole(request, network, this.#slots.known);
  }

  /** The same of an unknown sender. */
  readForm(request: IncomingMessage, network: string): Promise<Buffer> {
    return this.#readWhole(request, network, this.#slots.forms);
  }

  async #readWhole(request: IncomingMessage, network: string, slots: FairSemaphore<string>): Promise<Buffer> {
    const pieces: Buffer[] = [];
    const read = () => readToEnd(request, MAX_POSITION_BYTES, (piece) => void pieces.push(piece));
    await (isSmallBody(request, SMALL_BYTES) ? read() : slots.run(network, read));
    return Buffer.concat(pieces);
  }

  /** What a longer computation for a sender returns. */
  inTurns<T>(network: string, steps: Steps<T>): Promise<T> {
    return this.#turns.run(`ingest ${network}`, steps);
  }
}

/** As readPieces; a client that is still sending would not see the answer, so the rest of a rejected body is read first. */
async function readToEnd(...[request, maxBytes, take]: Parameters<typeof readPieces>): Promise<void> {
  try {
    await readPieces(request, maxBytes, take);
  } catch (error) {
    await restRead(request);
    throw error;
  }
}

const NDJSON_TYPE = /^application\/(x-)?(nd-?json|jsonl)/i;

/** The JSON of a body that carries one position. */
export function parsePositionJson(bytes: Buffer): Result<unknown, 'not_json' | 'too_many_values'> {
  if (hasMoreValues(bytes, MAX_POSITION_VALUES)) return fail('too_many_values');
  const value = parseJsonText(bytes.toString('utf8'));
  return value === undefined ? fail('not_json') : ok(value);
}
