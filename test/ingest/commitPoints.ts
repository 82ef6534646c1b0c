import { type CommitPorts, type CommittedFixes, commitFixes } from '../../src/ingest/commitFixes.ts';
import type { BatchPoint, FixOutcome } from '../../src/ingest/fix.ts';

/** Commits points with commitFixes, and returns the outcomes that it filled in beside what it returned. */
export async function commitPoints(
  ports: CommitPorts,
  points: readonly BatchPoint[],
  nowMs: number,
): Promise<CommittedFixes & { readonly outcomes: readonly (FixOutcome | null)[] }> {
  const records = points.map((point) => ({ ...point, outcome: null as FixOutcome | null }));
  const committed = await commitFixes(ports, records, nowMs);
  return { ...committed, outcomes: records.map(({ outcome }) => outcome) };
}
