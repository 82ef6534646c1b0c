import type { BenchCase, CaseContext, CaseOutcome } from '../benchCase.ts';
import type { CasePlace } from '../runCase.ts';
import { answerQuestions } from '../worker.ts';

export interface CaseQuestion {
  readonly place: CasePlace;
  readonly context: Omit<CaseContext, 'say'>;
}

// A worker: runs one case in a new process, so that earlier cases do not affect its memory or compiled code.
answerQuestions(async ({ place, context }: CaseQuestion): Promise<CaseOutcome> => {
  const cases = (await import(place.path)) as Readonly<Record<string, BenchCase>>;
  const bench = cases[place.exported] as BenchCase;
  return bench.run({ ...context, say: (line) => process.stderr.write(`    ${line}\n`) });
});
