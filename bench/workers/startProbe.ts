import { type Profile, profile } from '../measure/profile.ts';
import { startBenchService } from '../setup/service.ts';
import { answerQuestions } from '../worker.ts';

export interface StartQuestion {
  readonly kind: 'measure' | 'profile';
  readonly databaseUrl: string;
}

export type StartAnswer =
  /** `readyAtMs`: epoch time at which it was ready. */
  | { readonly kind: 'measured'; readonly rssMb: number; readonly readyAtMs: number }
  | { readonly kind: 'profiled'; readonly profile: Profile };

// A worker: starts the service on a database, and measures or profiles the start.
answerQuestions(async ({ kind, databaseUrl }: StartQuestion): Promise<StartAnswer> => {
  if (kind === 'profile') {
    const start = async () => {
      await (await startBenchService(databaseUrl)).stop();
      return 1;
    };
    return { kind: 'profiled', profile: await profile('a start', start) };
  }
  const service = await startBenchService(databaseUrl);
  const rssMb = process.memoryUsage.rss() / 2 ** 20;
  const readyAtMs = Date.now();
  await service.stop();
  return { kind: 'measured', rssMb, readyAtMs };
});
