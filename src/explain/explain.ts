import type { Explanation } from './explanation.ts';
import { notesOf } from './notes.ts';
import type { PointReplay } from './pointReplay.ts';
import type { Situation } from './situations.ts';
import { type Names, verdictOf } from './verdict.ts';

/** What a replay that has ended says about its window. `trimmed`: the plan shows less than was asked for. */
export function explanationOf(
  replay: PointReplay,
  situations: readonly Situation[],
  names: Names,
  trimmed: { readonly fromMs: number; readonly historyDays: number } | null,
): Explanation {
  return {
    ...verdictOf(replay, names),
    closest: replay.findings.closest,
    visits: replay.log.visits,
    gaps: replay.findings.gaps,
    notes: notesOf(replay.findings, situations, trimmed),
    steps: replay.steps,
  };
}
