import { invariant } from '../../src/base/invariant.ts';
import { type LoadResult, measureLoad } from '../measureLoad.ts';
import { PointSource, type PointSourceOptions } from '../pointSource.ts';
import { answerQuestions } from '../worker.ts';

/** Batches to POST to /positions, each connection its own lane of the source; later questions go on with it. */
export interface IngestLoad {
  readonly url: string;
  readonly token: string;
  readonly source: PointSourceOptions;
  readonly batchesPerLane: number;
}

export interface IngestResult extends LoadResult {
  readonly points: number;
}

let source: PointSource | null = null;

// A worker. The bodies are made before the time counts: making them is the trackers' work.
answerQuestions(async (load: IngestLoad): Promise<IngestResult> => {
  source ??= new PointSource(load.source);
  const { lanes, batch } = load.source;
  const bodies = Array.from({ length: lanes }, (_, lane) =>
    Array.from({ length: load.batchesPerLane }, () => JSON.stringify(source?.next(lane))),
  );
  let accepted = 0;
  let lane = 0;
  const result = await measureLoad({
    url: load.url,
    connections: lanes,
    amount: lanes * load.batchesPerLane,
    setupClient: (client) => {
      client.setRequests(
        (bodies[lane++] ?? []).map((body) => ({
          method: 'POST',
          path: '/positions',
          headers: { 'content-type': 'application/json', 'x-ingest-token': load.token },
          body,
          onResponse: (_status, text) => {
            accepted += (JSON.parse(text) as { data?: { accepted: number } }).data?.accepted ?? 0;
          },
        })),
      );
    },
  });
  const points = lanes * load.batchesPerLane * batch;
  invariant(accepted === points, `${accepted} of ${points} points were accepted`);
  return { ...result, points };
});
