import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { waitFor } from '../waitFor.ts';
import { drillScript, skipWithoutPrograms } from './drillScript.ts';

const PROGRAMS = [
  '/usr/bin/etcd',
  '/usr/bin/patroni',
  '/usr/lib/postgresql/15/bin/postgres',
  '/usr/bin/setpriv',
];

/** How a node fails, and what undoes it. */
export const NODE_FAULTS = { kill: 'start', pause: 'resume', cut: 'mend' } as const;

/** Whether a commit waits for a replica. */
export type PatroniMode = 'synchronous' | 'asynchronous';

/** Three nodes of Postgres under Patroni, as deploy/drills/three-nodes.sh starts them. */
export interface PatroniNodes {
  /** With all three hosts. */
  readonly url: string;
  /** The number of the node that takes writes, as Patroni says; null: none does. */
  primary(): Promise<string | null>;
  /** Waits until a primary has two replicas. */
  complete(): Promise<void>;
  call(command: string, node: string): Promise<void>;
}

/** For the option `skip` of a test: why there can be no nodes here, or false. */
export const skipWithoutPatroni = (): string | false => skipWithoutPrograms(PROGRAMS);

/** Starts them; they end after the test. One test at a time may have them. */
export async function startPatroni(t: TestContext, mode: PatroniMode): Promise<PatroniNodes> {
  const folder = mkdtempSync(join(tmpdir(), 'fleet-drill-'));
  const script = drillScript('three-nodes.sh');
  t.after(() => script('down', folder));
  await script('up', folder, mode);
  const replicas = async () => (await script('replicas')) === '2';
  const primary = () => script('primary').catch(() => null);
  return {
    url: await script('url'),
    primary,
    complete: () => waitFor(async () => (await primary()) !== null && (await replicas())),
    call: async (command, node) => {
      await script(command, node);
    },
  };
}
