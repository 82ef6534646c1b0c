import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';

/** A child process that answers questions, one after the other. It ends when its parent ends. */
export interface Worker<Question, Answer> extends AsyncDisposable {
  readonly process: ChildProcess;
  ask(question: Question): Promise<Answer>;
}

type Reply<Answer> = { readonly answer: Answer } | { readonly error: string };

/** Starts bench/workers/`name`.ts. Its output goes to the error output. `niceness`: 0 to 19, the last for least priority. */
export function openWorker<Question, Answer>(name: string, niceness = 0): Worker<Question, Answer> {
  const file = new URL(`./workers/${name}.ts`, import.meta.url);
  const child = fork(file, { stdio: ['ignore', 2, 2, 'ipc'] });
  // It has one thread yet, from which all others take their priority.
  if (niceness > 0 && child.pid !== undefined) setPriority(child.pid, niceness);
  const ended = once(child, 'exit').then(([code, signal]) => String(signal ?? code));
  return {
    process: child,
    ask: async (question) => {
      const replied = once(child, 'message') as Promise<[Reply<Answer>]>;
      child.send(question as object);
      const reply = await Promise.race([replied, ended]);
      if (typeof reply === 'string') throw new Error(`the worker ${name} ended with ${reply}`);
      if ('error' in reply[0]) throw new Error(`${name}: ${reply[0].error}`);
      return reply[0].answer;
    },
    [Symbol.asyncDispose]: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

/** In the child process: answers questions until the parent disconnects. */
export function answerQuestions<Question, Answer>(answer: (question: Question) => Promise<Answer>): void {
  process.on('message', (question) => {
    const reply = (message: Reply<Answer>) => process.send?.(message);
    answer(question as Question).then(
      (value) => reply({ answer: value }),
      (error: unknown) =>
        reply({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    );
  });
  process.on('disconnect', () => process.exit());
  // Ctrl-C reaches all processes of the terminal. The parent decides when this one ends.
  process.on('SIGINT', () => undefined);
}
