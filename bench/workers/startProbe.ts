import { type Profile, profile } from '../measure/profile.ts';
import { rssMb } from '../measure/usage.ts';
import { type BenchService, startBenchService } from '../setup/service.ts';
import { answerQuestions } from '../worker.ts';

/** `memory`: what a service that was started without a profile has now. */
export type StartQuestion =
  | { readonly kind: 'start'; readonly isProfiled: boolean; readonly databaseUrl: string }
  | { readonly kind: 'memory' };

export interface StartAnswer {
  readonly rssMb: number;
  /** Epoch time at which it was ready. */
  readonly readyAtMs: number;
  readonly profiles: readonly Profile[];
  readonly url: string;
  readonly ingestUrl: string;
}

// A worker: starts the service on a database, and measures or profiles the start. Without a profile it serves until its
// parent ends it.
let ready: StartAnswer;
answerQuestions(async (question: StartQuestion): Promise<StartAnswer> => {
  if (question.kind === 'memory') return { ...ready, rssMb: rssMb() };
  const start = async (): Promise<BenchService> => {
    const service = await startBenchService(question.databaseUrl);
    const { url, ingestUrl } = service;
    ready = { rssMb: rssMb(), readyAtMs: Date.now(), profiles: [], url, ingestUrl };
    return service;
  };
  if (!question.isProfiled) {
    await start();
    return ready;
  }
  const profiled = await profile('a start', async () => {
    await using _service = await start();
    return 1;
  });
  return { ...ready, profiles: [profiled] };
});
