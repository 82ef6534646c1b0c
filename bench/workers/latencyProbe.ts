import { type OpenLoad, type OpenResult, startOpenLoop } from '../measure/openLoop.ts';
import { answerQuestions } from '../worker.ts';

export type ProbeQuestion = ({ readonly kind: 'start' } & OpenLoad) | { readonly kind: 'stop' };

let stop: (() => Promise<OpenResult>) | null = null;

// A worker: makes calls at a steady rate in its own process.
answerQuestions(async (question: ProbeQuestion): Promise<OpenResult> => {
  if (question.kind === 'start') {
    stop = await startOpenLoop(question);
    return { completed: 0, refused: 0, seconds: 0, latencies: '' };
  }
  if (stop === null) throw new Error('the probe was not started');
  return stop();
});
