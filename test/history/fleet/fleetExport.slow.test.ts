import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { zstdDecompressSync } from 'node:zlib';
import { parquetReadObjects } from 'hyparquet';
import { SCOPES } from '../../../src/access/scopes.ts';
import { DAY_MS, HOUR_MS, weekStartMs } from '../../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../../src/postgres/partitions.ts';
import type { Sql } from '../../../src/postgres/sql.ts';
import { callBeside } from '../../support/beside.ts';
import { packPoints } from '../../support/history/packPoints.ts';
import { manualClock } from '../../support/manualClock.ts';
import { OWNER, ownerPod } from '../../support/ownerPod.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';
import { waitFor } from '../../support/waitFor.ts';

const ZSTD = { ZSTD: (bytes: Uint8Array) => zstdDecompressSync(bytes) };
const NOW_MS = Math.floor(Date.now() / 1_000) * 1_000;
const OTHER = 'other@example.com';
const MEMBER = 'member@example.com';
const SEED = Number(process.env['FLEET_SEED'] ?? 1);
const random = seededRandom(SEED);
const upTo = (n: number): number => Math.floor(random() * n);
const iso = (ms: number) => new Date(ms).toISOString();
const imeiOf = (n: number) => String(350_000_000_000_000 + n);

/** More than one look into memory; most have a point or two, every third has none. */
const SMALL = Array.from({ length: 1_100 }, (_, n) => imeiOf(1_000 + 7 * n));
/** The points of these small ones are packed. */
const SMALL_PACKED = new Set(SMALL.filter((_, n) => n % 8 === 1));
/** Their histories are long, packed and late, in two worlds, before, between and behind the small ones. */
const LONG = [1, 1_003, 2_500, 2_501, 5_000, 90_000].map(imeiOf);
/** So many points that no buffers between two processes take all of them. */
const HEAVY = imeiOf(95_000);
const HEAVY_POINTS = 40_000;
const FOREIGN = imeiOf(1_004);
const isShared = (imei: string) => Number(imei) % 2 === 0;
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  [LONG[0] as string]: ['north', 'vans'],
  [LONG[2] as string]: ['vans'],
  [LONG[5] as string]: ['south'],
};

interface Sent {
  readonly imei: string;
  readonly recorded_at: number;
  readonly latitude: number;
  readonly longitude: number;
  readonly speed_kmh: number;
  readonly odometer_km: number | null;
}

function pointAt(imei: string, recorded_at: number): Sent {
  const odometer_km = random() < 0.5 ? null : upTo(1e6) / 10;
  return { imei, recorded_at, latitude: 41 + random(), longitude: 12.25, speed_kmh: upTo(90), odometer_km };
}

/** Nine days, most of them closed, at times that are all different. */
function histories(): Sent[] {
  const points = LONG.flatMap((imei) => {
    const sent: Sent[] = [];
    for (let ms = NOW_MS - 9 * DAY_MS; ms < NOW_MS - HOUR_MS; ) {
      sent.push(pointAt(imei, ms));
      ms += random() < 0.01 ? upTo(20 * HOUR_MS) : 60_000 + upTo(1_800_000);
    }
    return sent;
  });
  const few = SMALL.flatMap((imei, n) =>
    Array.from({ length: n % 3 }, (_, k) =>
      pointAt(imei, NOW_MS - 8 * DAY_MS + upTo(3 * DAY_MS) + k * 4 * DAY_MS),
    ),
  );
  return [...points, ...few];
}

/** Stores points as rows. */
async function insert(sql: Sql, points: readonly Sent[]): Promise<void> {
  await ensureWeeks(sql, POSITIONS, [...new Set(points.map((point) => weekStartMs(point.recorded_at)))]);
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites,
      odometer_km, received_at, late)
    select d.id, to_timestamp(at / 1000), lat, lng, 7, speed, 359.9, 12, odo, to_timestamp((at + 1234) / 1000), false
    from unnest(${points.map((each) => each.imei)}::text[], ${points.map((each) => each.recorded_at)}::float8[],
      ${points.map((each) => each.latitude)}::float8[], ${points.map((each) => each.longitude)}::float8[],
      ${points.map((each) => each.speed_kmh)}::float8[], ${points.map((each) => each.odometer_km)}::float8[])
      as p (imei, at, lat, lng, speed, odo)
    join device d on d.imei = p.imei`;
}

describe(`GET /api/v3/history/export (seed ${SEED})`, () => {
  let otherKey = '';
  const owner = ownerPod(
    {
      clock: manualClock(NOW_MS),
      prepare: async ({ admin, sql }) => {
        await admin.run('account:update', '--email', OWNER, '--organization', 'Fleet');
        await admin.account(MEMBER, { organization: 'Fleet' });
        await admin.account(OTHER, { plan: 'basic' });
        const visible = [...LONG, ...SMALL];
        const lineOf = (imei: string) => ({ imei, groups: GROUPS[imei] ?? [] });
        await admin.importDevices(OWNER, [HEAVY, ...visible.filter((imei) => !isShared(imei))].map(lineOf));
        await admin.importDevices(
          MEMBER,
          visible.filter(isShared).map((imei) => ({ ...lineOf(imei), organization: true })),
        );
        await admin.device(OTHER, FOREIGN);
        const points = histories();
        const [packed, rows] = [
          points.filter(({ imei }) => LONG.includes(imei) || SMALL_PACKED.has(imei)),
          points.filter(({ imei }) => !LONG.includes(imei) && !SMALL_PACKED.has(imei)),
        ];
        await insert(sql, [...packed, pointAt(FOREIGN, NOW_MS - DAY_MS)]);
        const firstMs = NOW_MS - 20 * DAY_MS;
        await ensureWeeks(sql, POSITIONS, [
          weekStartMs(firstMs),
          weekStartMs(firstMs + HEAVY_POINTS * 1_000),
        ]);
        await packPoints(sql);
        // After the packing, so that they are rows of closed days.
        await insert(sql, rows);
        await sql`
          insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
          select (select id from device where imei = ${HEAVY}), ${new Date(firstMs)}::timestamptz + make_interval(secs => n),
            41 + n / 1e6, 12, 0, 50, 90, 9
          from generate_series(1, ${HEAVY_POINTS}) n`;
      },
    },
    async ({ pod, admin }) => {
      otherKey = (await admin.key(OTHER)).key;
      // The newest of each; then points come late, also to packed days.
      await pod.points(LONG.map((imei) => pointAt(imei, NOW_MS - 2_000)));
      const late = LONG.flatMap((imei) =>
        Array.from({ length: 40 }, () => pointAt(imei, NOW_MS - HOUR_MS - upTo(9 * DAY_MS))),
      );
      assert.ok((await pod.points(late)).late > 200);
    },
  );

  const path = (query = '') => `/api/v3/history/export${query}`;
  const read = (query = '', key = owner.key) => owner.pod.get(path(query), key);
  const PAST = `from=${iso(NOW_MS - 9 * DAY_MS)}&to=${iso(NOW_MS)}`;
  const VISIBLE = [...LONG, ...SMALL].sort();

  async function single(imei: string, query: string, format: string): Promise<string> {
    const { text, status } = await owner.pod.get(
      `/api/v3/devices/${imei}/history/export?format=${format}&${query}`,
      owner.key,
    );
    assert.equal(status, 200);
    return text;
  }

  async function begin(query: string, key: string): Promise<IncomingMessage> {
    const request = httpGet(`${owner.pod.api}${path(query)}`, {
      agent: false,
      headers: { 'X-API-Key': key },
    });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  }

  const imeisOf = (ndjson: string): string[] => [
    ...new Set([...ndjson.matchAll(/^\{"imei":"(\d+)"/gm)].map(([, imei]) => imei as string)),
  ];

  test('is the files of all devices one after the other, by IMEI, whatever the window', async () => {
    const windows = Array.from({ length: runs(1) }, () => {
      const fromMs = NOW_MS - upTo(9 * DAY_MS);
      return `from=${iso(fromMs)}&to=${iso(fromMs + upTo(random() < 0.5 ? 9 * DAY_MS : 6 * HOUR_MS))}`;
    });
    // Of the small ones a sample is compared byte by byte; the others by their order and number.
    const sample = new Set([...LONG, ...SMALL.filter((_, n) => n % 200 === 1)]);
    for (const window of [PAST, ...windows]) {
      const csv = await read(`?format=csv&${window}`);
      assert.equal(csv.headers.get('content-disposition'), 'attachment; filename="history.csv"');
      const { text, headers } = await read(`?${window}`);
      assert.equal(headers.get('content-type'), 'application/x-ndjson');
      const all = imeisOf(text).filter((imei) => imei !== HEAVY);
      assert.deepEqual(all, [...all].sort());
      const lines = Map.groupBy(text.split('\n').slice(0, -1), (line) => line.slice(9, 24));
      const rows = Map.groupBy(csv.text.split('\r\n').slice(1, -1), (line) => line.slice(0, 15));
      for (const imei of sample) {
        const [ndjson, own] = [await single(imei, window, 'ndjson'), await single(imei, window, 'csv')];
        assert.equal(
          (lines.get(imei) ?? []).map((line) => `${line}\n`).join(''),
          ndjson,
          `${imei} ${window}`,
        );
        assert.deepEqual(rows.get(imei) ?? [], own.split('\r\n').slice(1, -1));
        assert.equal(csv.text.split('\r\n')[0], own.split('\r\n')[0]);
      }
    }
    const whole = (await read(`?${PAST}`)).text;
    assert.deepEqual(imeisOf(whole), [
      ...VISIBLE.filter((imei) => LONG.includes(imei) || SMALL.indexOf(imei) % 3 > 0),
    ]);
  });

  test('as Parquet has the same points with the bits that were stored', async () => {
    for (const choice of ['', `&devices=${LONG.join()}`]) {
      const { text } = await read(`?${PAST}${choice}`);
      const lines = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      const response = await fetch(`${owner.pod.api}${path(`?format=parquet&${PAST}${choice}`)}`, {
        headers: { 'X-API-Key': owner.key },
      });
      const points = await parquetReadObjects({ file: await response.arrayBuffer(), compressors: ZSTD });
      assert.ok(points.length > 3_000);
      assert.deepEqual(
        points.map((point) => ({ ...point, recorded_at: (point['recorded_at'] as Date).toISOString() })),
        lines.map(
          ({
            imei,
            recorded_at,
            latitude,
            longitude,
            altitude_m,
            speed_kmh,
            heading,
            satellites,
            odometer_km,
          }) => ({
            ...{
              imei,
              recorded_at,
              latitude,
              longitude,
              altitude_m,
              speed_kmh,
              heading,
              satellites,
              odometer_km,
            },
          }),
        ),
      );
    }
  });

  test('has only the devices that are chosen and that the key sees', async () => {
    const chosen = async (query: string, key = owner.key) =>
      imeisOf((await read(`?${PAST}&${query}`, key)).text);
    const [first, , third, fourth, , last] = LONG as [string, string, string, string, string, string];
    assert.deepEqual(await chosen('group=vans'), [first, third]);
    assert.deepEqual(await chosen('group=south,%20north'), [first, last]);
    assert.deepEqual(await chosen('group=nobody'), []);
    assert.deepEqual(await chosen(`devices=${last},${FOREIGN},${third},${imeiOf(3)},${third}`), [
      third,
      last,
    ]);
    assert.deepEqual(await chosen(`after=${fourth}&devices=${LONG.join()}`), LONG.slice(4));
    assert.deepEqual(
      await chosen(`after=${SMALL.at(-2)}`),
      [SMALL.at(-1), last].filter((imei) => imei !== undefined),
    );
    assert.deepEqual(await chosen('', otherKey), [FOREIGN]);
    const { key } = await owner.admin.key(MEMBER);
    assert.ok((await chosen('', key)).every(isShared), 'the private devices of another member are not in it');
  });

  test('gives a day without a time, and cuts it to the plan of the reader', async () => {
    const { text } = await read(`?devices=${LONG[0]}`);
    const times = [...text.matchAll(/"recorded_at":"(.*?)"/g)].map(([, at]) => Date.parse(at as string));
    assert.ok(times.length > 10 && times.every((ms) => ms >= NOW_MS - DAY_MS));
    assert.equal(text, await single(LONG[0] as string, `from=${iso(NOW_MS - DAY_MS)}`, 'ndjson'));
    assert.equal((await read('?from=2001-01-01', otherKey)).text.split('\n').length, 2);
  });

  test('refuses what it cannot read with 400', async () => {
    const refused = [
      ...[
        '?format=gpx',
        '?format=geojson',
        '?format=CSV',
        '?from=yesterday',
        '?to=x',
        '?format=csv&format=csv',
      ],
      ...[
        `?from=${iso(NOW_MS - 31 * DAY_MS - HOUR_MS - 1)}`,
        `?from=${iso(NOW_MS - 40 * DAY_MS)}&to=${iso(NOW_MS)}`,
      ],
      ...[
        '?devices=',
        '?devices=x',
        `?devices=${LONG[0]}&group=vans`,
        '?after=x',
        `?group=${'a,'.repeat(20)}a`,
      ],
    ];
    for (const query of refused) {
      const { status, body } = await read(query);
      assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], query);
    }
    assert.match((await read(`?from=${iso(NOW_MS - 40 * DAY_MS)}`)).body.error.message, /31 days/);
    assert.equal((await read(`?from=${iso(NOW_MS - 31 * DAY_MS - HOUR_MS)}&devices=${LONG[0]}`)).status, 200);
    assert.equal((await owner.pod.get(path().replace('v3', 'v2'), owner.key)).status, 404);
  });

  test('opens with read_history and no other permission', async () => {
    const { key } = await owner.admin.key(OWNER, { scopes: 'read_history' });
    assert.equal((await read(`?devices=${LONG[0]}`, key)).status, 200);
    const others = SCOPES.filter((scope) => scope !== 'read_history').join();
    const refused = await read('', (await owner.admin.key(OWNER, { scopes: others })).key);
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'INSUFFICIENT_SCOPE']);
  });

  test('costs a reader that does not read its own places, nobody else one, and no connection to Postgres', async () => {
    const heavy = `?from=${iso(NOW_MS - 20 * DAY_MS)}&to=${iso(NOW_MS - 10 * DAY_MS)}`;
    const idle = [await begin(heavy, owner.key), await begin(heavy, owner.key)];
    for (const query of [path(), `/api/v3/devices/${LONG[0]}/history/export`]) {
      const third = await owner.pod.get(query, owner.key);
      assert.deepEqual([third.status, third.body.error.code], [429, 'TOO_MANY_REQUESTS']);
      assert.match(third.body.error.message, /2 exports of this account/);
    }
    assert.deepEqual(imeisOf((await read(`?${PAST}`, otherKey)).text), [FOREIGN]);
    assert.equal((await owner.pod.get(`/api/v3/devices/${LONG[0]}/history`, owner.key)).status, 200);
    await waitFor(async () => {
      const [busy] = await owner.sql<{ count: number }[]>`
        select count(*)::int from pg_stat_activity
        where datname = current_database() and application_name like 'fleet reads%' and state <> 'idle'`;
      return busy?.count === 0;
    });
    // One is read to its end, the other is given up, and frees its place.
    const [first, second] = idle as [IncomingMessage, IncomingMessage];
    assert.equal((await buffer(first)).toString().split('\n').length - 1, HEAVY_POINTS);
    second.destroy();
    await waitFor(async () => (await read(`?devices=${LONG[0]}`)).status === 200);
    const both = [await begin(heavy, owner.key), await begin(heavy, owner.key)];
    for (const response of both) response.destroy();
    await waitFor(async () => (await read(`?devices=${LONG[0]}`)).status === 200);
  });

  test('holds up nobody else: others read their own files, pages and positions', async () => {
    const heavy = `?from=${iso(NOW_MS - 20 * DAY_MS)}&to=${iso(NOW_MS)}&devices=${HEAVY}`;
    await callBeside({
      attackers: 2,
      attack: async () => {
        const { status, text } = await read(heavy);
        assert.deepEqual([status, text.split('\n').length - 1], [200, HEAVY_POINTS]);
      },
      rounds: 3,
      victim: async () => {
        assert.deepEqual(imeisOf((await read(`?${PAST}`, otherKey)).text), [FOREIGN]);
        const page = await owner.pod.get(`/api/v3/devices/${FOREIGN}/history`, otherKey);
        assert.equal(page.body.data.length, 1);
        assert.equal((await owner.pod.get('/api/v3/devices/nearest?lat=41&lng=12', otherKey)).status, 200);
      },
    });
  });

  test('ends a device that leaves what its reader sees, and goes on with the others', async () => {
    const response = await begin(
      `?devices=${HEAVY},${imeiOf(96_000)}&from=${iso(NOW_MS - 20 * DAY_MS)}`,
      owner.key,
    );
    await owner.sql`update device set world_id = (select world_id from account where email = ${OTHER}) where imei = ${HEAVY}`;
    const lines = (await buffer(response)).toString().split('\n').length - 1;
    assert.ok(lines > 0 && lines < HEAVY_POINTS, `${lines} points`);
    await owner.sql`update device set world_id = (select world_id from account where email = ${OWNER}) where imei = ${HEAVY}`;
  });
});
