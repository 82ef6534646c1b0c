import type { Row } from '../benchCase.ts';
import { Latencies } from '../latencies.ts';
import type { AttackResult } from './measureAttacks.ts';

/** What the victim's worst answer may be in any case, and else as a multiple of the worst when calm. */
const WORST_MS = 100;
const WORST_OF_CALM = 3;
/** What the pod may hold: so much of what it held when calm, and so many MB. */
const MEMORY_OF_CALM = 1.5;
const MEMORY_MB = 300;

/** The limits of an attack, each as a share of what is allowed: above 1 it is broken. */
export interface Burden {
  readonly polls: number;
  readonly points: number;
  readonly memory: number;
  /** Calls of the victim that were not answered as they should be. */
  readonly refused: number;
}

export function burdenOf({ calm, during }: AttackResult): Burden {
  return {
    polls: worstOf(during.polls) / Math.max(WORST_MS, WORST_OF_CALM * worstOf(calm.polls)),
    points: worstOf(during.points) / Math.max(WORST_MS, WORST_OF_CALM * worstOf(calm.points)),
    memory: during.rssMb / (MEMORY_OF_CALM * calm.rssMb + MEMORY_MB),
    refused: total(during.refusedPolls) + total(during.refusedPoints),
  };
}

/** Rows, figures and a line for each attack that says what was answered. */
export function summarize(results: readonly AttackResult[]): {
  rows: Row[];
  figures: Record<string, number>;
  notes: string[];
} {
  const burdens = results.map(burdenOf);
  const largest = (of: (burden: Burden) => number) => Math.max(...burdens.map(of));
  return {
    rows: results.flatMap(rowsOf),
    figures: {
      refused: burdens.reduce((sum, { refused }) => sum + refused, 0),
      worst_poll_of_limit: largest(({ polls }) => polls),
      worst_point_of_limit: largest(({ points }) => points),
      memory_of_limit: largest(({ memory }) => memory),
    },
    notes: results.map(noteOf),
  };
}

function rowsOf({ name, during: { polls, points, rssMb } }: AttackResult): Row[] {
  return [
    { what: `${name}: polls`, ...figuresOf(polls), rssMb },
    { what: `${name}: points`, ...figuresOf(points) },
  ];
}

function figuresOf(counts: readonly number[]): Pick<Row, 'p50Ms' | 'p99Ms' | 'worstMs'> {
  const latencies = new Latencies(counts);
  if (Number.isNaN(latencies.percentile(1))) return {};
  return {
    p50Ms: latencies.percentile(0.5),
    p99Ms: latencies.percentile(0.99),
    worstMs: latencies.percentile(1),
  };
}

function noteOf(result: AttackResult): string {
  const { name, calm, during, attacks } = result;
  const burden = burdenOf(result);
  const broken = [
    ...(burden.refused > 0 ? [`refused ${tally(during.refusedPolls)} ${tally(during.refusedPoints)}`] : []),
    ...(burden.polls > 1 ? ['polls'] : []),
    ...(burden.points > 1 ? ['points'] : []),
    ...(burden.memory > 1 ? ['memory'] : []),
  ];
  const span = (of: 'polls' | 'points' | 'deliveries') =>
    `${Math.round(worstOf(calm[of]))} → ${Math.round(worstOf(during[of]))} ms`;
  return (
    `- ${name}: ${broken.length === 0 ? 'within its limits' : `beyond its limits (${broken.join(', ')})`}; worst poll ${span('polls')}, ` +
    `point ${span('points')}, delivery ${span('deliveries')}, memory ${Math.round(calm.rssMb)} → ${Math.round(during.rssMb)} MB; ` +
    attacks
      .map(
        ({ answers, seconds }) =>
          `the attacker got ${tally(answers) || 'no answer'} in ${seconds.toFixed(1)} s`,
      )
      .join('; ')
  );
}

/** 0 when nothing was measured. */
const worstOf = (counts: readonly number[]): number => new Latencies(counts).percentile(1) || 0;
const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);
const tally = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([what, count]) => `${count} × ${what}`)
    .join(', ');
