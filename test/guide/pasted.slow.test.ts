import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse } from 'csv-parse/sync';
import { parquetMetadata } from 'hyparquet';
import { decodedPoints } from '../support/deviceTile.ts';
import { findFreePort } from '../support/ports.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { makeProjectDir, removeDataDir } from '../support/postgres/cluster.ts';
import { skipWithoutTools } from '../tools/tools.ts';
import { guideBlock, PROJECT } from './guide.ts';
import { findProgram } from './programs.ts';
import { paste } from './shell.ts';

// A stranger pastes the commands of the guide, in its order, into a folder where nothing has run before.

const IMEI = '350000000000017';
/** How the guide makes a key, in every block that calls the API. */
const MADE_KEY =
  /^KEY=\$\(npm run -s fleet -- (?<words>key:create [^|]+?) \|\s+node -p 'JSON\.parse\(fs\.readFileSync\(0\)\)\.key'\)$/gm;
/** The block that goes through npm, with its key made as it says. That of each other block is made by the same command in this process. */
const FIRST_KEY = 'first-webhook';
const missing = ['bash', 'curl', 'npm', 'date'].filter((name) => findProgram(name) === null);
const skip = missing.length > 0 && `there is no ${missing.join(', ')} on this machine`;

/** A folder that looks like a fresh clone after npm ci; the ports are free ones. */
async function startClone(t: TestContext) {
  const folder = await makeProjectDir();
  t.after(async () => {
    await removeDataDir(join(folder, '.data'));
    await rm(folder, { recursive: true, force: true });
  });
  for (const name of ['package.json', 'node_modules', 'src', 'sql']) {
    await symlink(join(PROJECT, name), join(folder, name));
  }
  const [api, ingest, receiver] = [await findFreePort(), await findFreePort(), await findFreePort()];
  const wall = await findFreePort();
  const env = { PORT: String(api), INGEST_PORT: String(ingest), WALL_PORT: String(wall) };
  const admin = adminOf({ DATA_DIR: join(folder, '.data') });
  const withKey = async (block: string): Promise<string> => {
    const [made] = block.matchAll(MADE_KEY);
    const { words } = made?.groups ?? {};
    assert.equal(words === undefined, !block.includes('key:create'), block);
    if (words === undefined) return block;
    const { key } = await admin.run(...words.split(' '));
    return block.replace(MADE_KEY, `KEY=${key}`);
  };
  const open = async (name: string, place = folder) => {
    const text = guideBlock(name);
    const block = (name === FIRST_KEY ? text : await withKey(text))
      .replace('npm ci && ', '')
      .replaceAll(':3000/', `:${api}/`)
      .replaceAll(':3001/', `:${ingest}/`)
      .replaceAll('9443', String(receiver));
    return paste(t, block, place, env, name === FIRST_KEY);
  };
  /** Runs a block to its end; the JSON documents that it has printed. */
  const run = async (name: string, place = folder) => {
    const shell = await open(name, place);
    assert.equal(await shell.ended, 0, `${name}:\n${shell.lines.join('\n')}`);
    return shell.lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  };
  return { folder, ingest, wall, open, run };
}

test('what the guide says to paste works, in its order', { skip }, async (t) => {
  const { folder, ingest, wall, open, run } = await startClone(t);
  const receiver = await open('receive');
  await receiver.said(/^receiving at /);
  const service = await open('serve');
  await service.said(/"msg":"listening"/);

  await t.test('the first webhook arrives', async () => {
    const said = await run('first-webhook');
    assert.deepEqual(said.at(-1).data, {
      accepted: 2,
      duplicates: 0,
      late: 0,
      rejected: [],
      ignored: [],
    });
    const { body } = JSON.parse(await receiver.said(/geofence_enter/));
    assert.deepEqual(
      [body.type, body.data.areaName, body.data.device.imei],
      ['geofence_enter', 'Depot', IMEI],
    );
    const [documented] = JSON.parse(`[${guideBlock('first-delivery')}]`);
    assert.deepEqual(shapeOf(JSON.parse(await receiver.said(/geofence_enter/))), shapeOf(documented));
  });

  for (const [name, accepted] of [
    ['feed-positions', [1, 2]],
    ['feed-traccar', [1]],
    ['feed-phone', [1]],
  ] as const) {
    await t.test(`${name}: the points are taken`, async () => {
      const said = await run(name);
      assert.deepEqual(
        said.map(({ data }) => [data.accepted, data.rejected, data.ignored]),
        accepted.map((count) => [count, [], []]),
      );
    });
  }

  await t.test('an area is tried on the points of last month', async () => {
    const { data, meta } = (await run('try-area')).at(-1);
    assert.deepEqual(
      data.map(({ dwell_seconds }: { dwell_seconds: number }) => dwell_seconds),
      [0, 120, 600],
    );
    assert.ok(
      data[0].events.some(
        ({ device, event }: { device: string; event: string }) => device === IMEI && event === 'entry',
      ),
    );
    const [documented] = JSON.parse(`[${guideBlock('tried-area')}]`);
    assert.deepEqual(shapeOf({ ...data[0], events: {} }), shapeOf({ ...documented, events: {} }));
    assert.deepEqual(shapeOf(data[0].events[0]), shapeOf({ ...documented.events[0], area_id: null }));
    assert.ok(meta.points >= 2);
  });

  await t.test('an area says why it did not fire', async () => {
    const { data } = (await run('why-not')).at(-1);
    const documented = JSON.parse(guideBlock('why-not-answer'));
    assert.deepEqual([data.verdict, data.message], [documented.verdict, documented.message]);
    assert.deepEqual(shapeOf(data), shapeOf(documented));
    assert.deepEqual(shapeOf(data.visits[0]), shapeOf(documented.visits[0]));
  });

  const send = async (points: readonly object[]): Promise<void> => {
    const secrets = JSON.parse(await readFile(join(folder, '.data', 'secrets.json'), 'utf8'));
    const sent = await fetch(`http://127.0.0.1:${ingest}/positions`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': secrets.ingest_token },
      body: JSON.stringify(points),
    });
    assert.equal(sent.status, 200);
  };

  await t.test(
    'the nearest moving van of a group is found, and the group is listed and counted',
    async () => {
      const here = { imei: IMEI, latitude: 41.891, longitude: 12.493, speed_kmh: 30 };
      await send([{ ...here, recorded_at: Date.now() }]);
      await run('group-vans');
      for (;;) {
        const [nearest, within, count] = (await run('moving-van')).slice(-3);
        // Another process has made the group: this one knows it within a second.
        if (nearest.data.length === 0) continue;
        assert.deepEqual([nearest.data[0].imei, nearest.data[0].status], [IMEI, 'moving']);
        assert.deepEqual([within.data[0].imei, within.meta], [IMEI, { total: 1, has_more: false }]);
        const { total, moving, located } = count.data;
        assert.deepEqual({ total, moving, located }, { total: 1, moving: 1, located: 1 });
        break;
      }
    },
  );

  await t.test('the map on the wall has the van, and takes a 304 while it stands', async () => {
    await writeFile(join(folder, 'wall.mjs'), guideBlock('wall.mjs'));
    const map = await open('wall-map');
    await map.said(/^the map is at /);
    const page = await fetch(`http://127.0.0.1:${wall}/`);
    assert.match(await page.text(), /maplibregl\.Map/);
    const address = `http://127.0.0.1:${wall}/tiles/devices/8/136/95.mvt?max_age_seconds=86400`;
    const tile = await fetch(address);
    assert.equal(tile.status, 200);
    const { layer, points } = decodedPoints(new Uint8Array(await tile.arrayBuffer()));
    assert.equal(layer, 'devices');
    assert.ok(points.some(({ properties }) => properties['imei'] === IMEI));
    const again = await fetch(address, { headers: { 'If-None-Match': tile.headers.get('etag') as string } });
    assert.equal(again.status, 304);
    assert.equal((await fetch(`http://127.0.0.1:${wall}/tiles/areas/0/0/0.mvt`)).status, 404);
  });

  await t.test('the mileage of last month is a list of days', async () => {
    const now = new Date();
    const noonMs = new Date(now.getFullYear(), now.getMonth() - 1, 15, 12).getTime();
    const place = { imei: IMEI, longitude: 12.5, speed_kmh: 60 };
    await send(
      [0, 1, 2].map((n) => ({ ...place, recorded_at: noonMs + n * 60_000, latitude: 41 + n * 0.01 })),
    );
    await run('fleet-mileage');
    const csv = await readFile(join(folder, 'mileage.csv'), 'utf8');
    const lines: Record<string, string>[] = parse(csv, { columns: true });
    const day = lines.find((line) => line['imei'] === IMEI && line['points'] === '3');
    assert.match(day?.['date'] ?? '', /-15$/);
    assert.ok(Math.abs(Number(day?.['distance_km']) - 2.2) < 0.1, day?.['distance_km']);
  });

  await t.test('the points of the fleet become a file of Parquet for each day', async () => {
    const yesterdayMs = Date.now() - 86_400_000;
    await send([{ imei: IMEI, recorded_at: yesterdayMs, latitude: 41.5, longitude: 12.5 }]);
    await run('fleet-parquet');
    const day = new Date(yesterdayMs).toISOString().slice(0, 10);
    const file = await readFile(join(folder, `${day}.parquet`));
    const { num_rows } = parquetMetadata(Uint8Array.from(file).buffer);
    assert.equal(num_rows, 1n);
  });

  await t.test('every point comes into the warehouse once, late ones too', async () => {
    const stored = async (): Promise<string[]> => {
      const names = (await readdir(folder)).filter((name) => /^points-.*\.ndjson$/.test(name));
      const files = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
      const lines = files.flatMap((file) => file.split('\n').slice(0, -1));
      return lines.map((line) => JSON.parse(line).recorded_at).sort();
    };
    await run('follow-points');
    assert.deepEqual(await stored(), []);
    const times = [Date.now() - 5 * 86_400_000, Date.now()].map((ms) => new Date(ms).toISOString());
    const place = { imei: IMEI, latitude: 41.5, longitude: 12.5 };
    await send([{ ...place, recorded_at: times[1] }]);
    await send([{ ...place, recorded_at: times[0] }]);
    const cursor = await readFile(join(folder, 'cursor'));
    await run('follow-points');
    assert.deepEqual(await stored(), times);
    // As if the run had been killed before it kept its cursor.
    await writeFile(join(folder, 'cursor'), cursor);
    await run('follow-points');
    assert.deepEqual(await stored(), times);
  });

  await t.test(
    'types are generated from the description, in a project that has the generator',
    {
      skip: skipWithoutTools(),
    },
    async () => {
      const place = join(folder, 'integrator');
      await mkdir(place);
      for (const name of ['package.json', 'node_modules'])
        await symlink(join(PROJECT, 'test', 'tools', name), join(place, name));
      await run('generate-types', place);
      assert.match(await readFile(join(place, 'fleet.d.ts'), 'utf8'), /^export interface paths \{/m);
    },
  );

  await t.test('application: a session makes a key, changes it, ends it, and ends itself', async () => {
    const shell = await open('application');
    assert.equal(await shell.ended, 0, shell.lines.join('\n'));
    const [updated, listed, changed, revoked] = shell.lines
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    assert.ok(updated.email);
    const made = listed.data.find(({ name }: { name: string }) => name === 'dispatcher');
    assert.deepEqual(made.allowlist, ['192.0.2.0/24']);
    assert.deepEqual([changed.data.id, changed.data.scopes], [made.id, ['read_devices']]);
    assert.ok(revoked.data.revoked_at);
    assert.equal(shell.lines.at(-1), '204');
  });
});

/** Names and types, whatever the values. */
function shapeOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value === null ? null : typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shapeOf(each)]));
}
