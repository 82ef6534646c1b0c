import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import { openSql } from '../../src/postgres/sql.ts';
import { INGEST_TOKEN, request } from '../support/pod.ts';
import { findFreePort } from '../support/ports.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { serviceEnv, startProcess } from '../support/service.ts';
import { waitFor } from '../support/waitFor.ts';
import { guideBlock } from './guide.ts';
import { findProgram } from './programs.ts';

// The programs that follow the stream, as the guide has them, by their own interpreters and within the limits.

const OWNER = 'owner@example.com';
const VEHICLES = 5_000;
const AREAS = 20;
/** A batch of points; each goes into an area or leaves it. */
const MOVED = 100;
const imeiOf = (n: number): string => String(350_000_000_000_000 + n);

const PROGRAMS = [
  { name: 'TypeScript', file: 'follow.ts', interpreter: process.execPath },
  { name: 'Python', file: 'follow.py', interpreter: findProgram('python3') },
] as const;

/** A program of the guide that runs, with what it has said. */
class Following {
  readonly events: number[] = [];
  readonly positions = new Map<string, string>();
  readonly errors: string[] = [];
  readonly #start: () => ReturnType<typeof spawn>;
  #child: ReturnType<typeof spawn>;

  constructor(start: () => ReturnType<typeof spawn>) {
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

  #run(): ReturnType<typeof spawn> {
    const child = this.#start();
    if (child.stdout === null || child.stderr === null) throw new Error('its output is piped');
    createInterface(child.stderr).on('line', (line) => this.errors.push(line));
    createInterface(child.stdout).on('line', (line) => {
      const [kind, id = '', at = ''] = line.split(' ');
      if (kind === 'event') this.events.push(Number(id));
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
  const {
    RATE_LIMIT_KEY_MINUTE: _,
    RATE_LIMIT_KEY_HOUR: __,
    RATE_LIMIT_IP_MINUTE: ___,
    ...env
  } = serviceEnv(url);
  const start = () => startProcess(t, { ...env, PORT: String(port), INGEST_PORT: String(ingestPort) });
  const api = `http://127.0.0.1:${port}`;
  let service = start();
  await service.listening;
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
    service.child.kill('SIGTERM');
    await service.ended;
    service = start();
    await service.listening;
  };
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(() => sql.end());
  return { api, key, sql, move, restart };
}

for (const { name, file, interpreter } of PROGRAMS) {
  const skip = interpreter === null && `there is no python3 on this machine`;

  describe(`the follower in ${name}`, { skip }, () => {
    test('has every event and every last position, through restarts of the pod and its own', async (t) => {
      const { api, key, sql, move, restart } = await startSite(t);
      const folder = await mkdtemp(join(tmpdir(), 'fleet-follow-'));
      t.after(() => rm(folder, { recursive: true, force: true }));
      await writeFile(join(folder, file), guideBlock(file));
      const following = new Following(() =>
        spawn(interpreter ?? '', [join(folder, file)], {
          cwd: folder,
          stdio: ['ignore', 'pipe', 'pipe'],
          env: { ...process.env, FLEET_URL: api, FLEET_KEY: key },
        }),
      );
      t.after(() => following.stop());
      await waitFor(() => following.positions.size === VEHICLES);

      await move();
      await waitFor(() => following.events.length >= MOVED);
      await restart();
      await move();
      await waitFor(() => following.events.length >= 2 * MOVED);
      await following.restart();
      await move();
      await waitFor(() => following.events.length >= 3 * MOVED);
      const events = await sql<{ id: number }[]>`select id from fleet_event order by id`;
      // What was said before the file was written may be said again.
      const said = [...new Set(following.events)].sort((a, b) => a - b);
      assert.deepEqual(
        said,
        events.map(({ id }) => id),
      );
      const positions = async () => {
        const rows = await sql<{ imei: string; recorded_at: Date }[]>`
          select d.imei, s.recorded_at from device d join device_state s on s.device_id = d.id
          where s.recorded_at is not null order by d.imei`;
        return rows.every((row) => following.positions.get(row.imei) === row.recorded_at.toISOString());
      };
      await waitFor(positions);
      assert.deepEqual(following.errors, []);
    });
  });
}
