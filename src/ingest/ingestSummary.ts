import type { Steps } from '../lib/workTurns.ts';
import type { FixOutcome } from './commitFixes.ts';
import type { Batch } from './formats/batchReader.ts';
import { REJECTIONS, rateExceeded } from './formats/rejection.ts';

/** What became of the points of a batch, as it is answered. */
export interface Summary {
  readonly accepted: number;
  readonly duplicates: number;
  readonly late: number;
  /** Both by index. */
  readonly rejected: Batch['rejected'];
  readonly ignored: Batch['ignored'];
}

/** `outcomes`: one for each of the batch's fixes. */
export function summarize(batch: Batch, outcomes: readonly FixOutcome[]): Summary {
  const count = { accepted: 0, duplicates: 0, late: 0 };
  const rejected = [...batch.rejected];
  outcomes.forEach((outcome, n) => {
    if (outcome === 'duplicate') count.duplicates++;
    else if (typeof outcome === 'object') {
      rejected.push({ index: batch.fixes[n]?.index ?? n, ...rateExceeded(outcome) });
    } else if (outcome === 'unknown_device' || outcome === 'too_complex') {
      const rejection = outcome === 'too_complex' ? REJECTIONS.TOO_COMPLEX : REJECTIONS.UNKNOWN_DEVICE;
      rejected.push({ index: batch.fixes[n]?.index ?? n, ...rejection });
    } else {
      count.accepted++;
      if (outcome === 'late') count.late++;
    }
  });
  return { ...count, rejected: rejected.sort((a, b) => a.index - b.index), ignored: batch.ignored };
}

const STEP_ITEMS = 250;

/** Whether the summary is so long that its JSON is made in steps. */
export function isLongSummary({ rejected, ignored }: Summary): boolean {
  return rejected.length + ignored.length > STEP_ITEMS;
}

/** The JSON of `{ data: summary }`: a batch may have 10 000 points to reject, or nine fields of each to ignore. */
export function* summaryJson({ rejected, ignored, ...counts }: Summary): Steps<string> {
  const parts = [`{"data":${JSON.stringify(counts).slice(0, -1)},"rejected":[`];
  yield* listJson(rejected, parts);
  parts.push('],"ignored":[');
  yield* listJson(ignored, parts);
  parts.push(']}}');
  return parts.join('');
}

function* listJson(items: readonly object[], parts: string[]): Steps<void> {
  for (let at = 0; at < items.length; at += STEP_ITEMS) {
    const json = JSON.stringify(items.slice(at, at + STEP_ITEMS));
    parts.push(at === 0 ? '' : ',', json.slice(1, -1));
    yield;
  }
}
