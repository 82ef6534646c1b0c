import type { BenchCase, CaseContext, CaseOutcome } from '../benchCase.ts';
import { answerQuestions } from '../worker.ts';

export interface CaseQuestion {
  /** Of the file of the case. */
  readonly path: string;
  readonly context: Omit<CaseContext, 'say'>;
}

// A worker: one case in a fresh process, whose memory and compiled code no other case has touched.
answerQuestions(async ({ path, context }: CaseQuestion): Promise<CaseOutcome> => {
  const { bench } = (await import(path)) as { bench: BenchCase };
  return bench.run({ ...context, say: (line) => process.stderr.write(`    ${line}\n`) });
});
