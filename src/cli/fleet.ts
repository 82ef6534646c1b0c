import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { readAdminConfig } from '../config.ts';
import { systemClock } from '../lib/time.ts';
import type { CommandContext } from './command.ts';
import { interruption } from './input.ts';
import { COMMANDS, runCommand } from './runCommand.ts';
import { withSession } from './session.ts';

const STDIN = 0;

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe has ended: see print.
  if (error.code !== 'EPIPE') throw error;
});

// Administration: npm run -s fleet -- <command>
process.exitCode = await runCommand(process.argv.slice(2), {
  commands: COMMANDS,
  context: createContext,
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
});

function createContext(): CommandContext | string[] {
  const config = readAdminConfig(process.env);
  if (!config.ok) return config.error;
  const say = (line: string) => process.stderr.write(`${line}\n`);
  return {
    config: config.value,
    withSession: (work) => withSession(config.value, say, work),
    print,
    say,
    // A getter: to look at stdin is to open it.
    get stdin() {
      return process.stdin;
    },
    askSecret: isatty(STDIN) ? askSecret : null,
    interrupted: interruption(() => say('ending; once more to end at once')),
    nowMs: systemClock,
  };
}

/** Prints no faster than it is read. */
async function print(value: unknown): Promise<boolean> {
  if (!process.stdout.writable) return false;
  if (!process.stdout.write(`${JSON.stringify(value)}\n`)) {
    await once(process.stdout, 'drain').catch(() => undefined); // what happened shows in `writable`
  }
  return process.stdout.writable;
}

/** Asks in the terminal for one line and does not show it. Empty when the user gives none (Ctrl-C, Ctrl-D). */
async function askSecret(prompt: string): Promise<string> {
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
