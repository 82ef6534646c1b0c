import type { BenchCase, CaseContext, CaseOutcome } from '../benchCase.ts';
import { answerQuestions } from '../worker.ts';

export interface CaseQuestion {
  /** The file of the case. */
  readonly path: string;
  readonly context: Omit<CaseContext, 'say'>;
}

// A worker: runs one case in a new process, so that earlier cases do not affect its memory or compiled code.
answerQuestions(async ({ path, context }: CaseQuestion): Promise<CaseOutcome> => {
  const { bench } = (await import(path)) as { bench: BenchCase };
  return bench.run({ ...context, say: (line) => process.stderr.write(`    ${line}\n`) });
});
