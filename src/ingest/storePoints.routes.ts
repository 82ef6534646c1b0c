import { type Answer, errorAnswer } from '../http/answer.ts';
import type { Clock } from '../lib/clock.ts';
import { withDeadline } from '../lib/deadline.ts';
import { DAY_MS } from '../lib/durations.ts';
import type { Result } from '../lib/result.ts';
import type { Batch } from './formats/batchReader.ts';
import type { ParsedPoint } from './formats/parsePoint.ts';
import type { Rejection } from './formats/rejection.ts';
import type { Ingest } from './ingest.ts';
import type { IngestBodies } from './ingestBodies.ts';
import { isLongSummary, type Summary, summarize, summaryJson } from './ingestSummary.ts';

const STORE_DEADLINE_MS = 15_000;

export interface StorePorts {
  readonly ingest: Ingest;
  readonly bodies: IngestBodies;
  readonly longestHistoryDays: number;
  readonly clock: Clock;
  readonly metrics: { countRejected(points: number): void };
}

/** Between which instants, with some tolerance for the newer end, points are taken. */
export function windowOf({ clock, longestHistoryDays }: StorePorts): { nowMs: number; oldestMs: number } {
  const nowMs = clock();
  return { nowMs, oldestMs: nowMs - longestHistoryDays * DAY_MS };
}

/**
 * Stores what could be read; answers after the commit, never before. When Postgres does not answer, the answer asks
 * the sender to try again; what is stored later after all is a duplicate then.
 */
export async function storeBatch({ ingest, metrics }: StorePorts, batch: Batch): Promise<Summary> {
  const outcomes = await withDeadline(
    ingest.store(batch.fixes.map(({ fix }) => fix)),
    STORE_DEADLINE_MS,
    'storing points',
  );
  metrics.countRejected(batch.rejected.length);
  return summarize(batch, outcomes);
}

/** The same for one point. */
export function storePoint(ports: StorePorts, point: Result<ParsedPoint, Rejection>): Promise<Summary> {
  if (!point.ok)
    return storeBatch(ports, { fixes: [], rejected: [{ index: 0, ...point.error }], ignored: [] });
  const { fix, ignored } = point.value;
  return storeBatch(ports, {
    fixes: [{ index: 0, fix }],
    rejected: [],
    ignored: ignored.map((field) => ({ index: 0, field })),
  });
}

/** The answer to what was sent from `network`. */
export async function storedAnswer(
  { bodies }: StorePorts,
  network: string,
  summary: Summary,
): Promise<Answer> {
  if (!isLongSummary(summary)) return { status: 200, body: JSON.stringify({ data: summary }) };
  return { status: 200, body: await bodies.inTurns(network, summaryJson(summary)) };
}

export const NOT_JSON = errorAnswer('INVALID_BODY', 'the body is not JSON; nothing was stored');
export const TOO_MANY_VALUES = errorAnswer(
  'PAYLOAD_TOO_LARGE',
  'the body has more values than any position; nothing was stored',
);
