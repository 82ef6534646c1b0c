import {
  isAcknowledged,
  type RecordedCall,
  type RestState,
  type StartedProcess,
  type Violation,
} from '../record.ts';

/** A device and a time: the identity of a point. */
export const keyOf = ({ imei, atMs }: { imei: string; atMs: number | null }): string => `${imei} ${atMs}`;

/** Every acknowledged point is stored once, and nothing else is. */
export function checkStored(calls: readonly RecordedCall[], { points }: RestState): Violation[] {
  const sent = new Set<string>();
  const acknowledged = new Map<string, string>();
  for (const call of calls) {
    if (call.kind !== 'points') continue;
    for (const [n, point] of call.points.entries()) {
      sent.add(keyOf(point));
      if (isAcknowledged(call) && !call.rejected.includes(n))
        acknowledged.set(keyOf(point), `batch ${call.batch}, acknowledged at ${Math.round(call.endMs)} ms`);
    }
  }
  const stored = Map.groupBy(points, keyOf);
  return [
    ...[...acknowledged].flatMap(([key, batch]): Violation[] => {
      const count = stored.get(key)?.length ?? 0;
      if (count === 1) return [];
      return [
        {
          rule: 'an acknowledged point is stored once',
          message: `${key} of ${batch} is stored ${count} times`,
        },
      ];
    }),
    ...[...stored].flatMap(([key, { length }]): Violation[] => {
      if (!sent.has(key)) return [{ rule: 'nothing is stored that nobody sent', message: key }];
      if (length === 1 || acknowledged.has(key)) return [];
      return [{ rule: 'an acknowledged point is stored once', message: `${key} is stored ${length} times` }];
    }),
  ];
}

/**
 * What a process must show of a device at a time: the newest point that it took itself, or that anyone took before it
 * began. Other processes may be a second behind, and longer without Postgres: also one that is sent a batch again which another
 * one has stored.
 */
export class NewestTaken {
  readonly #byProcess = new Map<number, { endMs: number; imei: string; atMs: number }[]>();

  constructor(calls: readonly RecordedCall[], processes: readonly StartedProcess[]) {
    const tried = new Map<number, Set<number | null>>();
    for (const call of calls) {
      if (call.kind !== 'points') continue;
      const others = tried.get(call.batch) ?? new Set();
      tried.set(call.batch, others.add(call.process));
      if (!isAcknowledged(call)) continue;
      const taken = call.points
        .filter((_, n) => !call.rejected.includes(n))
        .map(({ imei, atMs }) => ({ endMs: call.endMs, imei, atMs }));
      for (const { process, startedAtMs } of processes) {
        const hasStored = process === call.process && others.size === 1;
        if (!hasStored && call.endMs >= startedAtMs) continue;
        const all = this.#byProcess.get(process) ?? [];
        this.#byProcess.set(process, all);
        all.push(...taken);
      }
    }
  }

  /** By IMEI, as of `beforeMs`. */
  of(process: number, beforeMs: number): Map<string, number> {
    const newest = new Map<string, number>();
    for (const { endMs, imei, atMs } of this.#byProcess.get(process) ?? [])
      if (endMs < beforeMs) newest.set(imei, Math.max(newest.get(imei) ?? -Infinity, atMs));
    return newest;
  }
}

/** A pod shows what it took, and the position of a device never goes back on it. */
export function checkPositions(calls: readonly RecordedCall[], taken: NewestTaken): Violation[] {
  const violations: Violation[] = [];
  const shown = new Map<string, { endMs: number; atMs: number }[]>();
  for (const call of calls.toSorted((a, b) => a.beginMs - b.beginMs)) {
    if (call.kind !== 'positions' || call.process === null) continue;
    const newest = taken.of(call.process, call.beginMs);
    for (const { imei, atMs } of call.finds) {
      const earlier = shown.get(`${call.process} ${imei}`) ?? [];
      shown.set(`${call.process} ${imei}`, earlier);
      const least = earlier.reduce(
        (most, { endMs, atMs: was }) => (endMs <= call.beginMs ? Math.max(most, was) : most),
        newest.get(imei) ?? Number.NEGATIVE_INFINITY,
      );
      if ((atMs ?? -Infinity) < least)
        violations.push({
          rule: 'a pod shows the points that it took, and never goes back',
          message: `${call.what} of process ${call.process} at ${Math.round(call.beginMs)} ms: ${imei} is at ${atMs}, and was at ${least}`,
        });
      if (atMs !== null) earlier.push({ endMs: call.endMs, atMs });
    }
  }
  return violations;
}

/** When nothing happens any more, every process shows the newest stored point of each device. */
export function checkRestPositions({ points, positions }: RestState): Violation[] {
  const newest = new Map<string, number>();
  for (const { imei, atMs } of points) newest.set(imei, Math.max(newest.get(imei) ?? -Infinity, atMs));
  return positions.flatMap(({ process, devices }) =>
    devices
      .filter(({ imei, atMs }) => (atMs ?? null) !== (newest.get(imei) ?? null))
      .map(
        ({ imei, atMs }): Violation => ({
          rule: 'all pods show the same in the end',
          message: `${imei} is at ${atMs} on process ${process}, and its newest point is of ${newest.get(imei)}`,
        }),
      ),
  );
}
