import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { openSql } from '../../src/postgres/sql.ts';
import { INGEST_TOKEN, request, startPod } from '../support/pod.ts';
import { findFreePort } from '../support/ports.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';
import { guideBlock } from './guide.ts';
import { findProgram } from './programs.ts';

// The programs that follow the stream, as the guide has them, by their own interpreters and within the limits.

const OWNER = 'owner@example.com';
const VEHICLES = 1_200;
const AREAS = 20;
/** A batch of points; each goes into an area or leaves it. */
const MOVED = 100;
const imeiOf = (n: number): string => String(350_000_000_000_000 + n);

const PROGRAMS = [
  { file: 'follow.ts', interpreter: process.execPath },
  { file: 'follow.py', interpreter: findProgram('python3') },
] as const;

/** A program of the guide that runs, with what it has said. */
class Following {
  readonly events = new Set<number>();
  readonly positions = new Map<string, string>();
  readonly errors: string[] = [];
  readonly #start: () => ChildProcess;
  #child: ChildProcess;

  constructor(start: () => ChildProcess) {
    this.#start = start;
    this.#child = this.#run();
  }

  async restart(): Promise<void> {
    await this.stop();
    this.#child = this.#run();
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGTERM');
    await once(this.#child, 'exit');
  }

  #run(): ChildProcess {
    const child = this.#start();
    if (child.stdout === null || child.stderr === null) throw new Error('its output is piped');
    createInterface(child.stderr).on('line', (line) => this.errors.push(line));
    createInterface(child.stdout).on('line', (line) => {
      const [kind, id = '', at = ''] = line.split(' ');
      if (kind === 'event') this.events.add(Number(id));
      if (kind === 'device') this.positions.set(id, at);
    });
    return child;
  }
}

async function startSite(t: TestContext) {
  const { url } = await createDatabase(t);
  const admin = adminOf(url);
  await admin.account(OWNER);
  await admin.importDevices(
    OWNER,
    Array.from({ length: VEHICLES }, (_, n) => ({ imei: imeiOf(n) })),
  );
  const { key } = await admin.key(OWNER);
  const [port, ingestPort] = [await findFreePort(), await findFreePort()];
  // With the limits that a service has by itself.
  const env = { PORT: String(port), INGEST_PORT: String(ingestPort) };
  const api = `http://127.0.0.1:${port}`;
  let pod = await startPod(url, { t, env });
  for (let n = 0; n < AREAS; n++) {
    const area = { name: `Area ${n}`, type: 'circle', center: { lat: 10 + n, lng: 20 }, radius_m: 1_000 };
    const { status, text } = await request(`${api}/api/v3/areas`, {
      method: 'POST',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify(area),
    });
    assert.equal(status, 201, text);
  }
  let round = 0;
  const move = async (): Promise<void> => {
    round++;
    const points = Array.from({ length: MOVED }, (_, n) => ({
      imei: imeiOf(n),
      recorded_at: Date.now() - 600_000 + round * 1_000,
      latitude: 10 + (n % AREAS) + (round % 2 === 0 ? 0.5 : 0),
      longitude: 20,
    }));
    const { status, text } = await request(`http://127.0.0.1:${ingestPort}/positions`, {
      method: 'POST',
      headers: { 'X-Ingest-Token': INGEST_TOKEN },
      body: JSON.stringify(points),
    });
    assert.equal(status, 200, text);
  };
  const restart = async (): Promise<void> => {
    await pod.stop();
    pod = await startPod(url, { t, env });
  };
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(() => sql.end());
  return { api, key, sql, move, restart };
}

async function follow(t: TestContext, program: (typeof PROGRAMS)[number], env: Record<string, string>) {
  const { file, interpreter } = program;
  const folder = await mkdtemp(join(tmpdir(), 'fleet-follow-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, file), guideBlock(file));
  const following = new Following(() =>
    spawn(interpreter ?? '', [join(folder, file)], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    }),
  );
  t.after(() => following.stop());
  return following;
}

test('the followers have every event and every last position, through restarts of the pod and their own', async (t) => {
  const { api, key, sql, move, restart } = await startSite(t);
  const found = PROGRAMS.filter(({ interpreter }) => interpreter !== null);
  for (const { file } of PROGRAMS.slice(found.length)) t.diagnostic(`${file} is not tried: no python3`);
  const followers = await Promise.all(
    found.map((program) => follow(t, program, { FLEET_URL: api, FLEET_KEY: key })),
  );
  const haveEvents = (count: number) => waitFor(() => followers.every(({ events }) => events.size >= count));
  await waitFor(() => followers.every(({ positions }) => positions.size === VEHICLES));

  await move();
  await haveEvents(MOVED);
  await restart();
  await move();
  await haveEvents(2 * MOVED);
  // What was said before the file was written may be said again.
  await Promise.all(followers.map((following) => following.restart()));
  await move();
  await haveEvents(3 * MOVED);
  const events = await sql<{ id: number }[]>`select id from fleet_event order by id`;
  const rows = await sql<{ imei: string; recorded_at: Date }[]>`
    select d.imei, s.recorded_at from device d join device_state s on s.device_id = d.id
    where s.recorded_at is not null order by d.imei`;
  for (const { events: said, positions, errors } of followers) {
    assert.deepEqual(
      [...said].sort((a, b) => a - b),
      events.map(({ id }) => id),
    );
    await waitFor(() => rows.every((row) => positions.get(row.imei) === row.recorded_at.toISOString()));
    assert.deepEqual(errors, []);
  }
});
