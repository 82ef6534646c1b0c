import { mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { invariant } from '../../src/lib/errors.ts';
import { spawnWatched } from '../../src/postgres/embedded/watchdog.ts';
import { bareRequest } from '../support/pod.ts';
import { findFreePort } from '../support/ports.ts';
import { findProgram } from './programs.ts';

/** An alert that fires: its labels, `alertname` among them. */
export type Firing = Readonly<Record<string, string>>;

/** A Prometheus that scrapes pods as the job `fleet`. */
export interface Prometheus {
  /** What it scrapes so far. */
  readonly scraped: readonly string[];
  /** From now on it scrapes these as well: host and port of their metrics. */
  scrape(...addresses: readonly string[]): Promise<void>;
  /** What a query finds now. Null: it is not taken, or Prometheus does not answer yet. */
  query(text: string): Promise<readonly unknown[] | null>;
  firing(): Promise<readonly Firing[]>;
}

/** Starts one with these rules for the length of a test. It scrapes and evaluates every `intervalMs`. */
export async function startPrometheus(
  t: TestContext,
  rules: string,
  intervalMs: number,
): Promise<Prometheus> {
  const program = findProgram('prometheus');
  invariant(program !== null, 'there is a prometheus');
  const folder = await mkdtemp(join(tmpdir(), 'fleet-prometheus-'));
  await writeFile(join(folder, 'alerts.yml'), rules);
  await writeFile(join(folder, 'prometheus.yml'), configOf(intervalMs));
  const scraped: string[] = [];
  const scrape = async (...addresses: readonly string[]): Promise<void> => {
    scraped.push(...addresses);
    await writeFile(join(folder, 'next'), JSON.stringify([{ targets: scraped }]));
    await rename(join(folder, 'next'), join(folder, 'targets.json'));
  };
  await scrape();
  const port = await findFreePort();
  const log = await open(join(folder, 'prometheus.log'), 'w');
  const settings = [
    '--config.file=prometheus.yml',
    `--web.listen-address=127.0.0.1:${port}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
  ];
  const server = await spawnWatched(program, settings, { cwd: folder, logFd: log.fd, account: null });
  await log.close();
  t.after(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const ask = async (path: string) => {
    const reply = await bareRequest(`http://127.0.0.1:${port}/api/v1${path}`).catch(() => null);
    return reply?.body?.status === 'success' ? reply.body.data : null;
  };
  return {
    scraped,
    scrape,
    query: async (text) => (await ask(`/query?query=${encodeURIComponent(text)}`))?.result ?? null,
    firing: async () => {
      const alerts: readonly { state: string; labels: Firing }[] = (await ask('/alerts'))?.alerts ?? [];
      return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels);
    },
  };
}

const configOf = (intervalMs: number): string => `global:
  scrape_interval: ${intervalMs}ms
  scrape_timeout: ${intervalMs}ms
  evaluation_interval: ${intervalMs}ms
rule_files: [alerts.yml]
scrape_configs:
  - job_name: fleet
    file_sd_configs: [{ files: [targets.json], refresh_interval: 1s }]
`;
