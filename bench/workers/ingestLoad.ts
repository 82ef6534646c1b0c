import type { Options } from 'autocannon';
import { invariant } from '../../src/lib/errors.ts';
import { type LoadResult, measureLoads } from '../measure/measureLoad.ts';
import { PointSource, type PointSourceOptions } from '../setup/pointSource.ts';
import { INGEST_TOKEN } from '../setup/points.ts';
import { answerQuestions } from '../worker.ts';

/** Batches to POST to /positions. Each connection is one sender of the source. Later questions continue the source. */
export interface IngestLoad {
  /** The senders are distributed among them. */
  readonly urls: readonly string[];
  readonly source: PointSourceOptions;
  readonly batchesPerSender: number;
}

export interface IngestResult extends LoadResult {
  readonly points: number;
}

let source: PointSource | null = null;

// A worker. The bodies are made before the measurement: trackers make them in reality.
answerQuestions(async (load: IngestLoad): Promise<IngestResult> => {
  source ??= new PointSource(load.source);
  const { senders, batch } = load.source;
  const bodies = Array.from({ length: senders }, (_, sender) =>
    Array.from({ length: load.batchesPerSender }, () => JSON.stringify(source?.next(sender))),
  );
  let accepted = 0;
  let sender = 0;
  const own = senders / load.urls.length;
  const loadOf = (url: string): Options => ({
    url,
    connections: own,
    amount: own * load.batchesPerSender,
    setupClient: (client) => {
      client.setRequests(
        (bodies[sender++] ?? []).map((body) => ({
          method: 'POST',
          path: '/positions',
          headers: { 'content-type': 'application/json', 'x-ingest-token': INGEST_TOKEN },
          body,
          onResponse: (_status, text) => {
            accepted += (JSON.parse(text) as { data?: { accepted: number } }).data?.accepted ?? 0;
          },
        })),
      );
    },
  });
  const result = await measureLoads(load.urls.map(loadOf));
  const points = senders * load.batchesPerSender * batch;
  invariant(accepted === points, `${accepted} of ${points} points were accepted`);
  return { ...result, points };
});
