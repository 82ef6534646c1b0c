import { Worker } from 'node:worker_threads';
import { hasCode } from '../../lib/errors.ts';
import { FairSemaphore, Overloaded } from '../../lib/fairSemaphore.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { MINUTE_MS, OutOfTime } from '../../lib/time.ts';
import type { AreaGeometry } from '../area.ts';
import type { Area } from '../areaCatalog.memory.ts';
import type { OtherArea, ThreadData, ThreadReply, ThreadTask } from './overlapThread.ts';

/** Calls that are measured side by side, and that wait for it. */
const QUEUE = { running: 32, runningPerKey: 1, waiting: 1_000, waitingPerKey: 50 };
/** A call waits so long for those before it, and is measured for so long at most while others are. */
const WAIT_LIMIT_MS = 15_000;
const MEASURE_LIMIT_MS = 40_000;
const LOOKS_PER_STEP = 8;
/** Edges that polygon-clipping splits two polygons into before it gives up; an ordinary pair has a few thousand. */
const EDGES_MAX = '10000';
/** A call starts again when another call ends the thread, but runs in at most this many threads. */
const THREADS_MAX = 5;
/** A thread that is idle for this long is ended to release its memory. */
const IDLE_MS = MINUTE_MS;
/** Others that are sent to the thread at a time: copying them takes a fraction of a millisecond. */
const PART = { areas: 200, vertices: 8_000 };

export interface Overlap {
  readonly other: Area;
  readonly commonM2: number;
  /** The common part of the requested area, and of the other one: above 0, at most 1. */
  readonly share: number;
  readonly shareOfOther: number;
}

export interface FoundOverlaps {
  readonly total: number;
  /** Largest first; to be read once. */
  readonly overlaps: Iterable<Overlap>;
}

/** Overlaps that take more time or memory than a call may. */
export interface TooComplex {
  /** The other area that takes longest; null when the area itself does. */
  readonly longest: Area | null;
}

export interface OverlapLimits {
  /** Processor time of one call. Twenty thousand circles in a polygon take a twentieth of what is usual. */
  readonly callMs: number;
  /** A maximum of calls with twenty thousand overlaps each takes most of what is usual. */
  readonly heapMb: number;
  /** A step takes a few milliseconds. A thread that takes so long for one will not end it. */
  readonly stepMs: number;
}

const LIMITS: OverlapLimits = { callMs: 2_000, heapMb: 48, stepMs: 8_000 };

interface OpenCall {
  readonly number: number;
  readonly accountId: number;
  readonly area: Area;
  readonly others: readonly Area[];
  /** How many of the others the thread has. */
  sent: number;
  /** The threads that have begun it. */
  threads: number;
  readonly resolve: (found: Result<FoundOverlaps, TooComplex>) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Measures which areas overlap an area. It runs in a thread, since polygon-clipping cannot be interrupted: a call ends
 * when it has used up its processor time, and the thread is ended when a step does not end or memory runs out. Then only
 * the call that was running fails, and the others begin again in a new thread. In the thread the accounts share the
 * processor, each the same time. The thread starts with the first call.
 */
export class Overlaps {
  readonly #limits: OverlapLimits;
  readonly #queue = new FairSemaphore<number>(QUEUE);
  readonly #calls = new Map<number, OpenCall>();
  #lastNumber = 0;
  #isClosed = false;
  #thread: Worker | null = null;
  /** Shared with the thread, see ThreadData. */
  #progress: Int32Array = new Int32Array(0);
  /** While calls are open: checks that the thread makes progress. Otherwise: the time until the thread is ended. */
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: Partial<OverlapLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** The overlaps of an area with others, largest first. Rejects with Overloaded or OutOfTime. */
  async find(
    accountId: number,
    area: Area,
    others: Iterable<Area>,
  ): Promise<Result<FoundOverlaps, TooComplex>> {
    await this.#queue.acquireWithin(accountId, WAIT_LIMIT_MS);
    let timer: NodeJS.Timeout | undefined;
    try {
      if (this.#isClosed) throw CLOSED;
      const number = ++this.#lastNumber;
      const { promise, resolve, reject } = Promise.withResolvers<Result<FoundOverlaps, TooComplex>>();
      const begun = { number, sent: 0, threads: 0, resolve, reject };
      const call: OpenCall = { accountId, area, others: [...others], ...begun };
      this.#calls.set(number, call);
      timer = setTimeout(() => {
        this.#tell({ kind: 'forget', call: number });
        this.#end(call).reject(new OutOfTime('others are measured at the same time'));
      }, MEASURE_LIMIT_MS);
      this.#begin(call);
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#queue.release(accountId);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const call of [...this.#calls.values()]) this.#end(call).reject(CLOSED);
    await this.#endThread();
  }

  #begin(call: OpenCall): void {
    if (this.#thread === null) this.#start();
    if (this.#calls.size === 1) this.#watch();
    const { number, accountId, area } = call;
    this.#tell({ kind: 'begin', call: number, accountId, geometry: sendable(area) });
    call.sent = 0;
    call.threads++;
    this.#sendOthers(call);
  }

  #start(): void {
    this.#progress = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
    const data: ThreadData = { limitMs: this.#limits.callMs, progress: this.#progress };
    const thread = new Worker(new URL('./overlapThread.ts', import.meta.url), {
      workerData: data,
      execArgv: [],
      // polygon-clipping reads its limits from here. Nothing else of the environment concerns the thread.
      env: { POLYGON_CLIPPING_MAX_SWEEPLINE_SEGMENTS: EDGES_MAX, POLYGON_CLIPPING_MAX_QUEUE_SIZE: EDGES_MAX },
      resourceLimits: { maxOldGenerationSizeMb: this.#limits.heapMb, maxYoungGenerationSizeMb: 8 },
    });
    thread.on('message', (reply: ThreadReply) => this.#hear(reply));
    thread.on('error', (error) => this.#lose(thread, error));
    thread.on('exit', (code) => this.#lose(thread, new Error(`the overlap thread ended with ${code}`)));
    this.#thread = thread;
    this.#watch();
  }

  #tell(task: ThreadTask): void {
    this.#thread?.postMessage(task);
  }

  #sendOthers(call: OpenCall): void {
    const others: OtherArea[] = [];
    let vertices = 0;
    while (call.sent < call.others.length && others.length < PART.areas && vertices < PART.vertices) {
      const index = call.sent++;
      const other = call.others[index] as Area;
      if (other.id === call.area.id) continue;
      const geometry = sendable(other);
      vertices += 'points' in geometry ? geometry.points.length / 2 : 0;
      others.push({ id: other.id, index, geometry });
    }
    this.#tell({ kind: 'others', call: call.number, others, isLast: call.sent === call.others.length });
  }

  #hear(reply: ThreadReply): void {
    const call = this.#calls.get(reply.call);
    if (call === undefined) return; // given up
    switch (reply.kind) {
      case 'wanted':
        this.#sendOthers(call);
        return;
      case 'measured':
        this.#end(call).resolve(ok({ total: reply.overlaps.length / 3, overlaps: overlapsOf(call, reply) }));
        return;
      case 'too_complex':
        this.#end(call).resolve(fail({ longest: call.others[reply.longest ?? -1] ?? null }));
        return;
      case 'failed':
        this.#end(call).reject(new Error(`overlaps could not be measured: ${reply.error}`));
    }
  }

  /** The call, which the thread does not measure any more. */
  #end(call: OpenCall): OpenCall {
    this.#calls.delete(call.number);
    if (this.#calls.size === 0) this.#rest();
    return call;
  }

  /** Ends a thread in which a step does not end. */
  #watch(): void {
    clearTimeout(this.#timer);
    this.#thread?.ref();
    let seen = '';
    let sinceMs = performance.now();
    this.#timer = setInterval(() => {
      const now = this.#progress.join();
      if (now !== seen || this.#progress[0] === 0) [seen, sinceMs] = [now, performance.now()];
      else if (performance.now() - sinceMs > this.#limits.stepMs && this.#thread !== null) {
        const thread = this.#thread;
        this.#lose(thread, null);
        void thread.terminate();
      }
    }, this.#limits.stepMs / LOOKS_PER_STEP).unref();
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#thread?.unref(); // an idle one keeps nobody from ending
    this.#timer = setTimeout(() => void this.#endThread(), IDLE_MS).unref();
  }

  /** `error` is null when the thread was ended because of a step. */
  #lose(thread: Worker, error: Error | null): void {
    if (this.#thread !== thread) return;
    this.#thread = null;
    clearTimeout(this.#timer);
    const guilty = this.#calls.get(this.#progress[0] as number);
    const isTooMuch = error === null || hasCode(error, 'ERR_WORKER_OUT_OF_MEMORY');
    if (guilty !== undefined) {
      if (isTooMuch) this.#end(guilty).resolve(fail({ longest: null }));
      else this.#end(guilty).reject(error);
    }
    for (const call of [...this.#calls.values()]) {
      if (call.threads < THREADS_MAX) this.#begin(call);
      else this.#end(call).reject(error ?? new Overloaded('the thread was lost'));
    }
  }

  async #endThread(): Promise<void> {
    clearTimeout(this.#timer);
    const thread = this.#thread;
    this.#thread = null;
    await thread?.terminate();
  }
}

const CLOSED = new Error('overlaps are not measured any more');

/** The vertices alone, where they are a part of something larger: a copy of it would be sent. */
function sendable({ definition: { geometry } }: Area): AreaGeometry {
  if (!('points' in geometry)) return geometry;
  const { points } = geometry;
  return points.byteLength === points.buffer.byteLength ? geometry : { ...geometry, points: points.slice() };
}

function* overlapsOf(
  { others }: OpenCall,
  { ownM2, overlaps }: Extract<ThreadReply, { kind: 'measured' }>,
): Generator<Overlap> {
  for (let at = 0; at < overlaps.length; at += 3) {
    const [other, commonM2, otherM2] = [others[overlaps[at]!]!, overlaps[at + 1]!, overlaps[at + 2]!];
    yield { other, commonM2, share: commonM2 / ownM2, shareOfOther: commonM2 / otherM2 };
  }
}
