import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

/** Asks in the terminal for one line and does not show it. Empty when the user gives none (Ctrl-C, Ctrl-D). */
export async function askSecret(prompt: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  // readline switches the terminal's own echo off and writes what is typed to `output`.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const line = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  process.stderr.write(prompt); // only now, when nothing typed is shown any more
  line.once('line', resolve);
  line.once('SIGINT', () => resolve(''));
  line.once('close', () => resolve(''));
  try {
    return await promise;
  } finally {
    line.close();
    process.stderr.write('\n');
  }
}
