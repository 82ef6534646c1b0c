import { DamagedPoints } from '../../lib/errors.ts';
import { IdleThread } from '../../lib/idleThread.ts';
import { MINUTE_MS } from '../../lib/time.ts';
import type { PointsRead } from '../points.sql.ts';
import type { EndedDevice, FleetSummaryRequest } from './deviceSums.ts';
import type { SumsReply, SumsTask } from './fleetSumsThread.ts';

/** What it holds are periods of some devices; the points of a call are not in its heap. */
const HEAP_MB = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 48 };

/** The sums of one call. */
export interface SumsOfCall {
  /**
   * Adds the points of the next statement, after those of the ones before: the caller has them no more. Rejects with
   * DamagedPoints.
   */
  add(part: PointsRead): Promise<readonly EndedDevice[]>;
  /** To be called once, whether all was added or not. */
  end(): void;
}

/** A part that is being added, or waits for it. */
interface OpenPart {
  resolve: (ended: readonly EndedDevice[]) => void;
  reject: (error: Error) => void;
}

/**
 * Adds up the points of many devices in a thread, so that a long call neither takes the turns of others nor waits for them:
 * the service only reads the points. In the thread the accounts share the processor. The thread starts with the first
 * call. How many calls there are at a time is for the caller to limit.
 */
export class FleetSums {
  /** Their parts are answered in the order in which they came. */
  readonly #calls = new Map<number, OpenPart[]>();
  readonly #thread = new IdleThread<SumsTask, SumsReply>({
    entry: new URL('./fleetSumsThread.ts', import.meta.url),
    does: 'adds up points',
    resourceLimits: HEAP_MB,
    idleMs: MINUTE_MS,
    hear: (reply) => this.#hear(reply),
    lose: (error) => this.#lose(error),
  });
  #lastNumber = 0;

  begin(accountId: number, { days, ...request }: FleetSummaryRequest): SumsOfCall {
    const call = ++this.#lastNumber;
    this.#thread.tell({ call, kind: 'begin', accountId, request, timeZone: days.timeZone });
    this.#calls.set(call, []);
    return {
      add: (part) =>
        new Promise((resolve, reject) => {
          const parts = this.#calls.get(call);
          if (parts === undefined) throw new Error('the thread that had begun the call has ended');
          parts.push({ resolve, reject });
          this.#thread.tell({ call, kind: 'add', part }, packedBytesOf(part));
        }),
      end: () => {
        if (!this.#calls.delete(call)) return;
        this.#thread.tell({ call, kind: 'end' });
        if (this.#calls.size === 0) this.#thread.rest();
      },
    };
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #hear(reply: SumsReply): void {
    const open = this.#calls.get(reply.call)?.shift();
    if (open === undefined) return; // given up
    if (reply.kind === 'added') open.resolve(reply.ended);
    else if (reply.kind === 'damaged') open.reject(new DamagedPoints(reply.damage));
    else open.reject(new Error(`points could not be added up: ${reply.error}`));
  }

  /** Its calls cannot go on: what they have added up is lost. */
  #lose(error: Error): void {
    for (const { reject } of [...this.#calls.values()].flat()) reject(error);
    this.#calls.clear();
  }
}

/** The memory of packed points, which the thread gets without a copy. */
function packedBytesOf({ found }: PointsRead): ArrayBuffer[] {
  return found.flatMap((stored) => stored?.packed.map(({ bytes }) => bytes.buffer as ArrayBuffer) ?? []);
}
