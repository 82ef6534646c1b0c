import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { childEnv } from '../childEnv.ts';
import { waitFor } from '../waitFor.ts';

const FLEET = join(import.meta.dirname, '..', '..', '..', 'src', 'cli', 'fleet.ts');

/** `webhook:receive` in a process of its own, with a folder for its certificate. */
export function startWebhookReceive(t: TestContext, dataDir: string, ...argv: string[]) {
  const child = spawn(process.execPath, [FLEET, 'webhook:receive', ...argv], {
    env: childEnv({ DATA_DIR: dataDir }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface(child.stderr).on('line', (line) => lines.push(line));
  const stdout = text(child.stdout);
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const said = async (pattern: RegExp): Promise<RegExpExecArray> => {
    let found: RegExpExecArray | null = null;
    await waitFor(() => {
      found = lines.map((line) => pattern.exec(line)).find((match) => match !== null) ?? null;
      if (child.exitCode !== null && found === null) throw new Error(lines.join('\n'));
      return found !== null;
    });
    return found as unknown as RegExpExecArray;
  };
  const interrupt = async () => {
    child.kill('SIGINT');
    return { code: await ended, counts: JSON.parse(await stdout) };
  };
  return { lines, said, interrupt };
}

/** The deliveries among the lines that it said. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into deliveries of every shape
export const deliveriesIn = (lines: readonly string[]): any[] =>
  lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
