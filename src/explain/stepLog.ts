const CHUNK_POINTS = 4_096;

/**
 * What became of a point, in the order of DECISIONS:
 * - `outside`, `inside`: nothing changed; inside after the entry.
 * - `pending`: inside, and not for the minimum stay yet. `passed`: outside again before that.
 * - `entry`, `exit`: the point produced this event.
 * - `late`: stored only. `not_watched`, `no_area`: not evaluated against this area.
 */
export const DECISIONS = [
  'outside',
  'pending',
  'entry',
  'inside',
  'passed',
  'exit',
  'late',
  'not_watched',
  'no_area',
] as const;

export type Decision = (typeof DECISIONS)[number];

/** As they are kept: by their places. */
const LATENESS = [false, true, null] as const;

/** What became of one point. */
export interface Step {
  readonly recordedAtMs: number;
  /** NaN: not recorded. */
  readonly receivedAtMs: number;
  /** Null: not recorded. */
  readonly late: boolean | null;
  readonly distanceM: number;
  readonly decision: Decision;
}

/** Every point of a window: 26 bytes for each, outside of the heap. */
export class StepLog {
  count = 0;
  readonly #chunks: Chunk[] = [];

  add({ recordedAtMs, receivedAtMs, late, distanceM, decision }: Step): void {
    const n = this.count % CHUNK_POINTS;
    if (n === 0) this.#chunks.push(newChunk());
    const chunk = this.#chunks.at(-1) as Chunk;
    chunk.recordedAtMs[n] = recordedAtMs;
    chunk.receivedAtMs[n] = receivedAtMs;
    chunk.late[n] = LATENESS.indexOf(late);
    chunk.distanceM[n] = distanceM;
    chunk.decisions[n] = DECISIONS.indexOf(decision);
    this.count++;
  }

  /** Point `n`, from 0, in the order of their times. */
  at(n: number): Step {
    const chunk = this.#chunks[Math.floor(n / CHUNK_POINTS)] as Chunk;
    const at = n % CHUNK_POINTS;
    return {
      recordedAtMs: chunk.recordedAtMs[at]!,
      receivedAtMs: chunk.receivedAtMs[at]!,
      late: LATENESS[chunk.late[at]!] as boolean | null,
      distanceM: chunk.distanceM[at]!,
      decision: DECISIONS[chunk.decisions[at]!] as Decision,
    };
  }
}

type Chunk = ReturnType<typeof newChunk>;

const newChunk = () => ({
  recordedAtMs: new Float64Array(CHUNK_POINTS),
  receivedAtMs: new Float64Array(CHUNK_POINTS),
  distanceM: new Float64Array(CHUNK_POINTS),
  late: new Uint8Array(CHUNK_POINTS),
  decisions: new Uint8Array(CHUNK_POINTS),
});
