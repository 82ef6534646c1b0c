import { writeFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { after, suite } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { patienceMs } from '../support/patience.ts';
import { costSoFar, keepCost } from './costs.ts';

const [folder, ...files] = JSON.parse(process.env['FLEET_TEST_FILES'] ?? '[""]') as [string, ...string[]];
/** With a pattern of names, a suite without such a test does not run, and its hooks neither: there is no end to wait for. */
const hasPattern = process.execArgv.some((argument) => argument.startsWith('--test-name-pattern'));
const environment = { ...process.env };
const OPEN_LIMIT_MS = patienceMs(10_000);
const POLL_MS = 10;

/** What tells node:test which suite declares a test, while a file loads. */
export interface LoadHook {
  enable(): void;
  disable(): void;
}

/**
 * Takes test files until none is left, so that what the files share is loaded and compiled once. The tests, hooks and
 * errors of a file belong to a suite with its name.
 */
export async function runFiles(hook: LoadHook): Promise<void> {
  // What a failed test has left open does not keep this process running.
  after(() => void setTimeout(() => process.exit(), OPEN_LIMIT_MS).unref());
  // node:test ends its run when nothing keeps the process running, which may be so while a test waits for a child process.
  const running = setInterval(() => undefined, OPEN_LIMIT_MS);
  for (const [index, file] of files.entries()) {
    if (isTaken(index)) continue;
    // A variable that the file before has set would reach the processes that this file starts.
    for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
    Object.assign(process.env, environment);
    const before = openResources();
    const costBefore = costSoFar();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    hook.enable();
    void suite(file, async () => {
      try {
        await import(pathToFileURL(file).href);
        flushCompileCache(); // for the processes that the file starts: those that are killed keep nothing for others
      } finally {
        after(() => nothingIsOpenBut(before).finally(end)); // registered last, so that it runs last
        if (!hasPattern) hook.disable();
      }
    });
    if (hasPattern) continue;
    await ended;
    keepCost(folder, index, costBefore);
  }
  clearInterval(running);
}

/** Whether another process has the file; if not, this one has it now. */
function isTaken(index: number): boolean {
  try {
    writeFileSync(join(folder, String(index)), '', { flag: 'wx' });
    return false;
  } catch {
    return true;
  }
}

async function nothingIsOpenBut(before: readonly string[]): Promise<void> {
  for (const untilMs = performance.now() + OPEN_LIMIT_MS; ; await sleep(POLL_MS)) {
    const open = openResources();
    for (const known of before) if (open.includes(known)) open.splice(open.indexOf(known), 1);
    if (open.length === 0) return;
    if (performance.now() > untilMs)
      throw new Error(`The file has ended and leaves open: ${open.join(', ')}.`);
  }
}

/** What is open. Inputs and outputs are opened when they are first used (also by importing node:process), so all are used here. */
function openResources(): string[] {
  void process.stdin;
  void process.stdout;
  void process.stderr;
  return process.getActiveResourcesInfo();
}
