import { Worker } from 'node:worker_threads';
import { DamagedPoints } from '../../lib/errors.ts';
import { MINUTE_MS } from '../../lib/time.ts';
import type { PointsRead } from '../points.sql.ts';
import type { EndedDevice, FleetSummaryRequest } from './deviceSums.ts';
import type { SumsReply, SumsTask } from './fleetSumsThread.ts';

/** A thread that is idle for this long is ended to release its memory. */
const IDLE_MS = MINUTE_MS;
/** What it holds are periods of some devices; the points of a call are not in its heap. */
const HEAP_MB = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 48 };

/** The sums of one call. */
export interface SumsOfCall {
  /**
   * Adds the points of the next statement, when those of the one before are added: the caller has them no more. Rejects with
   * DamagedPoints.
   */
  add(part: PointsRead): Promise<readonly EndedDevice[]>;
  /** To be called once, whether all was added or not. */
  end(): void;
}

interface OpenCall {
  resolve: (ended: readonly EndedDevice[]) => void;
  reject: (error: Error) => void;
}

/**
 * Adds up the points of many devices in a thread, so that a long call neither takes the turns of others nor waits for them:
 * the service only reads the points. In the thread the accounts share the processor. The thread starts with the first
 * call. How many calls there are at a time is for the caller to limit.
 */
export class FleetSums {
  readonly #calls = new Map<number, OpenCall | null>();
  #lastNumber = 0;
  #isClosed = false;
  #thread: Worker | null = null;
  #timer: NodeJS.Timeout | undefined;

  begin(accountId: number, { days, ...request }: FleetSummaryRequest): SumsOfCall {
    const call = ++this.#lastNumber;
    const thread = this.#started();
    const tell = (task: SumsTask, given: ArrayBuffer[] = []): void => thread.postMessage(task, given);
    this.#calls.set(call, null);
    tell({ call, kind: 'begin', accountId, request, timeZone: days.timeZone });
    return {
      add: (part) =>
        new Promise((resolve, reject) => {
          if (this.#thread !== thread) throw LOST;
          this.#calls.set(call, { resolve, reject });
          tell({ call, kind: 'add', part }, packedBytesOf(part));
        }),
      end: () => {
        if (!this.#calls.delete(call) || this.#thread !== thread) return;
        tell({ call, kind: 'end' });
        if (this.#calls.size === 0) this.#rest(thread);
      },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#endThread();
  }

  #started(): Worker {
    if (this.#isClosed) throw LOST;
    clearTimeout(this.#timer);
    if (this.#thread === null) {
      const thread = new Worker(new URL('./fleetSumsThread.ts', import.meta.url), {
        execArgv: [],
        env: {},
        resourceLimits: HEAP_MB,
      });
      thread.on('message', (reply: SumsReply) => this.#hear(reply));
      thread.on('error', (error) => this.#lose(thread, error));
      thread.on('exit', () => this.#lose(thread, LOST));
      this.#thread = thread;
    }
    this.#thread.ref();
    return this.#thread;
  }

  #hear(reply: SumsReply): void {
    const open = this.#calls.get(reply.call);
    if (open === undefined || open === null) return; // given up
    this.#calls.set(reply.call, null);
    if (reply.kind === 'added') open.resolve(reply.ended);
    else if (reply.kind === 'damaged') open.reject(new DamagedPoints(reply.damage));
    else open.reject(new Error(`points could not be added up: ${reply.error}`));
  }

  #rest(thread: Worker): void {
    thread.unref(); // an idle one keeps nobody from ending
    this.#timer = setTimeout(() => void this.#endThread(), IDLE_MS).unref();
  }

  async #endThread(): Promise<void> {
    clearTimeout(this.#timer);
    const thread = this.#thread;
    if (thread === null) return;
    this.#lose(thread, LOST);
    await thread.terminate();
  }

  /** Its calls cannot go on: what they have added up is lost. */
  #lose(thread: Worker, error: Error): void {
    if (this.#thread !== thread) return;
    this.#thread = null;
    clearTimeout(this.#timer);
    for (const open of this.#calls.values()) open?.reject(error);
    this.#calls.clear();
  }
}

/** The memory of packed points, which the thread gets without a copy. */
function packedBytesOf({ found }: PointsRead): ArrayBuffer[] {
  return found.flatMap((stored) => stored?.packed.map(({ bytes }) => bytes.buffer as ArrayBuffer) ?? []);
}

const LOST = new Error('the thread that adds up points has ended');
