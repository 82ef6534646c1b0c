import { type Profile, profile } from '../measure/profile.ts';
import { rssMb } from '../measure/usage.ts';
import { startBenchService } from '../setup/service.ts';
import { answerQuestions } from '../worker.ts';

export interface StartQuestion {
  readonly isProfiled: boolean;
  readonly databaseUrl: string;
}

export interface StartAnswer {
  readonly rssMb: number;
  /** Epoch time at which it was ready. */
  readonly readyAtMs: number;
  readonly profiles: readonly Profile[];
}

// A worker: starts the service on a database, and measures or profiles the start.
answerQuestions(async ({ isProfiled, databaseUrl }: StartQuestion): Promise<StartAnswer> => {
  let ready = { rssMb: 0, readyAtMs: 0 };
  const start = async () => {
    await using _service = await startBenchService(databaseUrl);
    ready = { rssMb: rssMb(), readyAtMs: Date.now() };
    return 1;
  };
  if (isProfiled) return { profiles: [await profile('a start', start)], ...ready };
  await start();
  return { profiles: [], ...ready };
});
