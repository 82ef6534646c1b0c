import type { Row } from '../benchCase.ts';
import { type CallTimes, measureCalls, medianTimes } from '../measure/measureCalls.ts';
import { median } from '../measure/median.ts';

/** One way to do something. */
export interface Contender {
  readonly what: string;
  readonly call: (n: number) => unknown;
  /** Calls between two readings of the clock: 1 where a call takes milliseconds. */
  readonly block?: number;
}

/** How many short rounds, and the seconds of one measurement in all rounds together. */
export interface Effort {
  readonly rounds: number;
  readonly seconds: number;
}

export interface MeasuredContender {
  readonly row: Row;
  readonly rounds: readonly CallTimes[];
}

/** Measures contenders in short rounds, in turn and in alternating order, so that other work affects all of them. */
export function measureAlternately(
  contenders: readonly Contender[],
  { rounds, seconds }: Effort,
): MeasuredContender[] {
  const times = contenders.map((): CallTimes[] => []);
  for (let round = 0; round < rounds; round++) {
    const order = [...contenders.keys()];
    if (round % 2 === 1) order.reverse();
    for (const n of order) {
      const { call, block } = contenders[n]!;
      times[n]!.push(measureCalls(seconds / rounds, call, block));
    }
  }
  return contenders.map(({ what }, n) => {
    const row = { what, unit: 'calls', ...medianTimes(times[n]!) };
    return { row, rounds: times[n]! };
  });
}

/** How many times the processor time of `ours` a contender takes: the median of the rounds. */
export function ratioTo(ours: MeasuredContender, other: MeasuredContender): number {
  return median(ours.rounds.map(({ cpuUs }, round) => other.rounds[round]!.cpuUs / cpuUs));
}
