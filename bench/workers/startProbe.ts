import { startBenchService } from '../service.ts';
import { answerQuestions } from '../worker.ts';

export interface StartResult {
  readonly rssMb: number;
  /** Epoch time at which it served. */
  readonly readyAtMs: number;
}

// A worker: starts the service on a database and says when it is ready.
answerQuestions(async ({ databaseUrl }: { databaseUrl: string }): Promise<StartResult> => {
  const service = await startBenchService(databaseUrl);
  const result = { rssMb: process.memoryUsage.rss() / 2 ** 20, readyAtMs: Date.now() };
  await service.stop();
  return result;
});
