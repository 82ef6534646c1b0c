import type { Part, Row } from '../benchCase.ts';
import { Latencies } from '../measure/latencies.ts';
import type { AttackerReply } from '../workers/neighbourAttacker.ts';
import type { AttackResult } from './measureAttacks.ts';

/** The victim's worst answer may always take this long, or this many times the worst answer before the attack. */
const WORST_MS = 100;
const WORST_OF_CALM = 3;
/** A commit may wait for the write to the disk before its own, and for its own. */
const DISK_WRITES = 2;
/** The pod may hold this many times what it held before the attack, or holds with what that leaves, plus this many MB. */
const MEMORY_OF_CALM = 1.5;
const MEMORY_MB = 300;

/** What an attack does to the victim, each value as a share of what is allowed. Above 1 the limit is broken. */
export function limitUseOf({ calm, during, diskMs, restedMb = calm.rssMb }: AttackResult) {
  return {
    polls: worstOf(during.polls) / Math.max(WORST_MS, WORST_OF_CALM * worstOf(calm.polls)),
    points:
      worstOf(during.points) /
      (Math.max(WORST_MS, WORST_OF_CALM * worstOf(calm.points)) + DISK_WRITES * diskMs),
    memory: during.rssMb / (MEMORY_OF_CALM * restedMb + MEMORY_MB),
    failedCalls: total(during.failedPolls) + total(during.failedPoints),
  };
}

/** Rows, metrics, and one line for each attack with the answers that it got. */
export function summarize(results: readonly AttackResult[]): Part & { readonly notes: readonly string[] } {
  const uses = results.map(limitUseOf);
  const largest = (of: (use: (typeof uses)[number]) => number) => Math.max(...uses.map(of));
  return {
    rows: results.flatMap(({ name, during: { polls, points, rssMb } }) => [
      { what: `${name}: polls`, ...percentilesOf(polls), rssMb },
      { what: `${name}: points`, ...percentilesOf(points) },
    ]),
    metrics: {
      failed_calls: uses.reduce((sum, { failedCalls }) => sum + failedCalls, 0),
      worst_poll_of_limit: largest(({ polls }) => polls),
      worst_point_of_limit: largest(({ points }) => points),
      memory_of_limit: largest(({ memory }) => memory),
    },
    notes: results.map(noteOf),
  };
}

export function percentilesOf(encoded: string): Pick<Row, 'p50Ms' | 'p99Ms' | 'worstMs'> {
  const latencies = new Latencies(encoded);
  const { p50Ms, p99Ms } = latencies.percentiles();
  return Number.isNaN(p50Ms) ? {} : { p50Ms, p99Ms, worstMs: latencies.percentile(1) };
}

function noteOf(result: AttackResult): string {
  const { name, calm, during, diskMs, attacks } = result;
  const use = limitUseOf(result);
  const broken: string[] = (['polls', 'points', 'memory'] as const).filter((what) => use[what] > 1);
  if (use.failedCalls > 0)
    broken.unshift(`failed calls ${formatCounts(during.failedPolls)} ${formatCounts(during.failedPoints)}`);
  const rested = result.restedMb === undefined ? '' : ` (of which ${Math.round(result.restedMb)} MB stay)`;
  const answered = ({ answers, seconds }: AttackerReply) =>
    `the attacker got ${formatCounts(answers) || 'no answer'} in ${seconds.toFixed(1)} s`;
  const span = (of: 'polls' | 'points' | 'deliveries') =>
    `${Math.round(worstOf(calm[of]))} → ${Math.round(worstOf(during[of]))} ms`;
  return (
    `- ${name}: ${broken.length === 0 ? 'within its limits' : `beyond its limits (${broken.join(', ')})`}; worst poll ${span('polls')}, ` +
    `point ${span('points')}, delivery ${span('deliveries')}, write to the disk ${Math.round(diskMs)} ms, memory ${Math.round(calm.rssMb)} → ${Math.round(during.rssMb)} MB${rested}; ` +
    attacks.map(answered).join('; ')
  );
}

const worstOf = (encoded: string): number => new Latencies(encoded).percentile(1) || 0;
const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);
const formatCounts = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([what, count]) => `${count} × ${what}`)
    .join(', ');
