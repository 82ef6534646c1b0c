import type { CaseContext, CaseOutcome } from '../benchCase.ts';
import { type CasePlace, loadCase } from '../runCase.ts';
import { answerQuestions } from '../worker.ts';

export interface CaseQuestion {
  readonly place: CasePlace;
  readonly context: Omit<CaseContext, 'say'>;
}

// A worker: runs one case in a new process, so that earlier cases do not affect its memory or compiled code.
answerQuestions(async ({ place, context }: CaseQuestion): Promise<CaseOutcome> => {
  const bench = await loadCase(place);
  return bench.run({ ...context, say: (line) => process.stderr.write(`    ${line}\n`) });
});
