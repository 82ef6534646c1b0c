import { Agent, get } from 'node:http';
import { Latencies } from '../measure/latencies.ts';
import { answerQuestions } from '../worker.ts';

export type ProbeQuestion =
  | {
      readonly kind: 'start';
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly paths: readonly string[];
      readonly perSecond: number;
    }
  | { readonly kind: 'stop' };

export interface ProbeResult {
  readonly completed: number;
  readonly latencies: readonly number[];
}

const TICK_MS = 2;
const CONNECTIONS = 64;

let finish: (() => Promise<ProbeResult>) | null = null;

// A worker: sends requests at a steady rate, whether or not answers come. Time runs from when a request was due, so
// a pause of the server affects every request of that time.
answerQuestions(async (question: ProbeQuestion): Promise<ProbeResult> => {
  if (question.kind === 'start') {
    finish = startProbe(question);
    return { completed: 0, latencies: [] };
  }
  if (finish === null) throw new Error('the probe was not started');
  return finish();
});

function startProbe({ url, headers, paths, perSecond }: Extract<ProbeQuestion, { kind: 'start' }>) {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const latencies = new Latencies();
  const open = new Set<Promise<void>>();
  const startMs = performance.now();
  let error: string | null = null;
  let sent = 0;
  const ask = (dueMs: number): Promise<void> =>
    new Promise((resolve) => {
      const fail = (reason: string) => {
        error ??= reason;
        resolve();
      };
      get(`${url}${paths[sent % paths.length]}`, { agent, headers }, (response) => {
        response.resume().once('error', (error) => fail(error.message));
        response.once('end', () => {
          if (response.statusCode !== 200) return fail(`an answer was ${response.statusCode}`);
          latencies.add(performance.now() - dueMs);
          resolve();
        });
      }).once('error', (error) => fail(error.message));
    });
  const timer = setInterval(() => {
    for (; sent < ((performance.now() - startMs) * perSecond) / 1_000; sent++) {
      const asked = ask(startMs + (sent * 1_000) / perSecond);
      open.add(asked);
      void asked.then(() => open.delete(asked));
    }
  }, TICK_MS);
  return async (): Promise<ProbeResult> => {
    clearInterval(timer);
    await Promise.all(open);
    agent.destroy();
    if (error !== null) throw new Error(`the probe failed: ${error}`);
    return { completed: sent, latencies: latencies.counts };
  };
}
