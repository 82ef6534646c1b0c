import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { SCOPES } from '../../../src/access/scopes.ts';
import { DAY_MS } from '../../../src/lib/time.ts';
import { packPoints } from '../../support/history/packPoints.ts';
import { callApi, logIn, setPassword } from '../../support/http/application.ts';
import { readBothVersions } from '../../support/http/readBothVersions.ts';
import { manualClock } from '../../support/manualClock.ts';
import { OWNER, ownerPod } from '../../support/ownerPod.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';

/** Rome has put its clock back two days before. */
const NOW_MS = Date.UTC(2025, 9, 28, 12);
const FIRST_MS = NOW_MS - 12 * DAY_MS;
const OTHER = 'other@example.com';
const BASIC = 'basic@example.com';
const FOREIGN = '350000000000900';
const DEVICES = 16;
/** Of 14 or 15 digits. */
const imeiOf = (n: number): string => String((n % 5 === 0 ? 35_000_000_000_100 : 350_000_000_000_000) + n);
const iso = (ms: number) => new Date(ms).toISOString();

interface Sent {
  readonly imei: string;
  readonly recorded_at: number;
  readonly latitude: number;
  readonly longitude: number;
  readonly speed_kmh: number;
}

/** Drives and stands with gaps: some days every other minute, others hardly ever. */
function track(imei: string, seed: number): Sent[] {
  const random = seededRandom(seed);
  const points: Sent[] = [];
  let [latitude, speed_kmh] = [41, 0];
  for (let ms = FIRST_MS + random() * 3 * DAY_MS; ms <= NOW_MS; ) {
    if (random() < 0.05) speed_kmh = random() < 0.5 ? 0 : random() * 90;
    latitude += speed_kmh * 1e-5;
    points.push({ imei, recorded_at: Math.floor(ms), latitude, longitude: 12.5, speed_kmh });
    ms += random() < 0.02 ? random() * 2 * DAY_MS : 120_000 + random() * 120_000;
  }
  return points;
}

const NAMES = ['Van "1", the white one', '=1+1', 'Łódź', null];

describe('GET /history/summary', () => {
  let basicKey = '';
  let otherKey = '';
  const devices = Array.from({ length: DEVICES }, (_, n) => ({
    imei: imeiOf(n),
    name: NAMES[n % NAMES.length],
    plate: n % 3 === 0 ? null : `GA ${n}`,
    groups: [['north'], ['south', 'cold'], [], ['north', 'south']][n % 4],
    organization: n % 6 === 1,
  }));
  const owner = ownerPod(
    {
      clock: manualClock(NOW_MS),
      prepare: async ({ admin }) => {
        await admin.run('account:update', '--email', OWNER, '--organization', 'Haulage');
        await setPassword(admin, OWNER);
        await admin.importDevices(OWNER, devices);
        await admin.account(OTHER);
        await admin.device(OTHER, FOREIGN);
        otherKey = (await admin.key(OTHER)).key;
        await admin.account(BASIC, { plan: 'basic' });
        basicKey = (await admin.key(BASIC)).key;
      },
    },
    async ({ pod, sql }) => {
      // Silent ones among them.
      const points = devices.flatMap(({ imei }, n) => (n % 7 === 3 ? [] : track(imei, n + 1)));
      const isLate = ({ recorded_at }: Sent) => recorded_at % 97 === 0;
      const send = async (some: readonly Sent[]) => {
        for (let at = 0; at < some.length; at += 10_000) await pod.points(some.slice(at, at + 10_000));
      };
      await send(points.filter((point) => !isLate(point) && point.recorded_at < NOW_MS - 2 * DAY_MS));
      const packed = await packPoints(sql);
      assert.ok(packed.points > 3_000, `${packed.points} points are packed`);
      await send(points.filter((point) => isLate(point) || point.recorded_at >= NOW_MS - 2 * DAY_MS));
      await send(track(FOREIGN, 99).slice(0, 100));
    },
  );

  const path = (query: string) => `/history/summary?${query}`;
  const get = (query: string, key = owner.key) => readBothVersions(owner.pod, path(query), key);
  const WINDOW = `from=${iso(FIRST_MS)}&to=${iso(NOW_MS)}`;

  type Item = Record<string, unknown> & { readonly device: { readonly imei: string } };

  /** What the summaries of the devices give, one by one. */
  async function oneByOne(query: string, isChosen: (device: (typeof devices)[number]) => boolean) {
    const items: string[] = [];
    const sorted = devices.filter(isChosen).sort((a, b) => (a.imei < b.imei ? -1 : 1));
    for (const { imei, name, plate } of sorted) {
      const { status, body } = await owner.pod.get(
        `/api/v3/devices/${imei}/history/summary?${query}`,
        owner.key,
      );
      assert.equal(status, 200);
      for (const period of body.data)
        items.push(JSON.stringify({ device: { imei, name, plate }, ...period }));
    }
    return items;
  }

  /** The cells of a line, as a spreadsheet has them. */
  function cellsOf({ device, first, last, ...period }: Record<string, unknown>): string[] {
    const ends = [first, last].map((end) => end ?? { latitude: null, longitude: null, recorded_at: null });
    const values = [device, period, ...ends].flatMap((each) => Object.values(each as object));
    return values.map((value) => (value === null ? '' : String(value)));
  }

  test('gives for each device what its own summary gives, whatever is asked, as JSON, NDJSON and CSV', async () => {
    const time = fc.integer({ min: FIRST_MS - DAY_MS, max: NOW_MS + DAY_MS });
    const GROUPS = ['north', 'south', 'cold', 'nobody'];
    const choice = fc.oneof(
      fc.constant({ query: '', isChosen: (_: (typeof devices)[number]) => true }),
      fc.uniqueArray(fc.constantFrom(...GROUPS), { minLength: 1 }).map((names) => ({
        query: `&group=${names.join()}`,
        isChosen: ({ groups }: (typeof devices)[number]) =>
          groups?.some((name) => names.includes(name)) ?? false,
      })),
      fc.uniqueArray(fc.nat(DEVICES + 5), { minLength: 1 }).map((own) => ({
        query: `&devices=${[...own.map(imeiOf), FOREIGN].join()}`,
        isChosen: ({ imei }: (typeof devices)[number]) => own.map(imeiOf).includes(imei),
      })),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(time, time),
        fc.boolean(),
        fc.constantFrom('by=total', 'by=day', 'by=day&tz=Europe/Rome', 'by=day&tz=Asia/Kathmandu'),
        choice,
        fc.option(fc.nat(DEVICES)),
        async (times, isOpen, by, { query, isChosen }, after) => {
          const [fromMs, toMs] = times.sort((a, b) => a - b) as [number, number];
          const window = isOpen ? '' : `from=${iso(fromMs)}&to=${iso(toMs)}`;
          const single = `${window || `from=${iso(NOW_MS - DAY_MS)}&to=${iso(NOW_MS)}`}&${by}`;
          const behind = after === null ? '' : imeiOf(after);
          const expected = await oneByOne(single, (device) => isChosen(device) && device.imei > behind);
          const all = `${window}&${by}${query}&after=${behind}`;
          const json = await get(`${all}&format=json`);
          assert.equal(json.status, 200, json.text);
          assert.deepEqual(
            json.body.data.map((item: Item) => JSON.stringify(item)),
            expected,
          );
          const ndjson = await get(`${all}&format=ndjson`);
          assert.equal(ndjson.text, expected.map((line) => `${line}\n`).join(''));
          const csv = await get(`${all}&format=csv`);
          const [header, ...lines] = parse(csv.text, { record_delimiter: '\r\n' });
          assert.deepEqual(lines, json.body.data.map(cellsOf));
          assert.equal(header?.includes('date'), by !== 'by=total');
        },
      ),
      { numRuns: runs(4) },
    );
  });

  test('says in its head what file it is, and in its meta what was asked', async () => {
    const read = (format: string) => get(`${WINDOW}&group=north,south&by=day&format=${format}`);
    const [json, csv, ndjson] = [await read('json'), await read('csv'), await read('ndjson')];
    assert.equal(json.headers.get('content-type'), 'application/json; charset=utf-8');
    assert.equal(csv.headers.get('content-type'), 'text/csv; charset=utf-8; header=present');
    assert.equal(csv.headers.get('content-disposition'), 'attachment; filename="summary.csv"');
    assert.equal(ndjson.headers.get('content-type'), 'application/x-ndjson');
    assert.deepEqual(json.body.meta, {
      query: {
        ...{ from: iso(FIRST_MS), to: iso(NOW_MS), by: 'day', tz: 'UTC' },
        ...{ group: ['north', 'south'], devices: null, after: null },
      },
    });
    const [header] = parse(csv.text);
    assert.equal(
      header?.join(),
      'imei,name,plate,from,to,date,points,distance_km,moving_seconds,parked_seconds,gap_seconds,max_speed_kmh,' +
        'average_speed_kmh,first_latitude,first_longitude,first_recorded_at,last_latitude,last_longitude,last_recorded_at',
    );
  });

  test('goes on behind the last device that a reader has whole', async () => {
    const whole = (await get(`${WINDOW}&format=ndjson`)).text.trimEnd().split('\n');
    const { device } = JSON.parse(whole[6] as string) as Item;
    const rest = (await get(`${WINDOW}&format=ndjson&after=${device.imei}`)).text.trimEnd().split('\n');
    assert.deepEqual(rest, whole.slice(7));
    const next = JSON.parse(whole[7] as string) as Item;
    const both = `&devices=${next.device.imei},${device.imei}&after=${device.imei}`;
    assert.equal((await get(`${WINDOW}&format=ndjson${both}`)).text, `${whole[7]}\n`);
  });

  const SPAN = 'from and to are more than 31 days apart; narrow them';
  const MONTH = 'from=2025-09-30T22:00Z&to=2025-10-31T22:59:59.999Z';
  const REFUSED: readonly (readonly [query: string, message: string])[] = [
    ['from=yesterday', 'from and to must be ISO 8601 times'],
    [`${WINDOW}&by=trip`, 'by must be one of total, day'],
    [`${WINDOW}&tz=Rome`, 'tz must be a name of the IANA time zone database, such as Europe/Rome'],
    [`${WINDOW}&format=xml`, 'format must be one of json, csv, ndjson'],
    [`${WINDOW}&by=day&by=day`, 'a query parameter is given twice'],
    ['from=2025-09-20&to=2025-10-22', SPAN],
    ['from=2025-09-20', SPAN],
    ['from=2025-09-30T22:00Z&to=2025-10-31T23:00:00.001Z', SPAN],
    [`${WINDOW}&group=a&devices=${FOREIGN}`, 'send either group or devices'],
    [`${WINDOW}&group=a,`, 'group must be a comma-separated list of 1 to 20 names'],
    [`${WINDOW}&devices=van`, 'devices must be a comma-separated list of 1 to 100 IMEIs of 14 to 17 digits'],
    [`${WINDOW}&after=van`, 'after must be an IMEI of 14 to 17 digits'],
  ];
  for (const [query, message] of REFUSED)
    test(`refuses ${query.replaceAll(/=2025[^&]*/g, '')} with 400`, async () => {
      const { status, body } = await get(query);
      assert.deepEqual([status, body.error], [400, { code: 'BAD_REQUEST', message }]);
    });

  test('takes a month in which the clock is put back', async () => {
    const { status, body } = await get(`${MONTH}&tz=Europe/Rome&by=day&devices=${imeiOf(0)}`);
    assert.equal(status, 200);
    assert.ok(body.data.some(({ date }: { date: string }) => date === '2025-10-26'));
  });

  test('shows what the plan of the reader retains', async () => {
    const { status, body } = await get('from=2001-01-01', basicKey);
    assert.equal(status, 200);
    assert.deepEqual(body.data, []);
    assert.equal(body.meta.query.from, iso(NOW_MS - 30 * DAY_MS));
  });

  test('shows nothing of others, by no choice', async () => {
    assert.deepEqual(
      (await get(WINDOW, otherKey)).body.data.map(({ device }: Item) => device.imei),
      [FOREIGN],
    );
    const own = await get(`${WINDOW}&devices=${imeiOf(1)},${imeiOf(2)}`, otherKey);
    assert.deepEqual(own.body.data, []);
    assert.deepEqual((await get(`${WINDOW}&group=north`, otherKey)).body.data, []);
  });

  test('opens with read_history_summary and no other permission, for sessions on v1, and not for a revoked key', async () => {
    const { id, key } = await owner.admin.key(OWNER, { scopes: 'read_history_summary' });
    assert.equal((await owner.pod.get(`/api/v3${path(WINDOW)}`, key)).status, 200);
    const others = SCOPES.filter((scope) => scope !== 'read_history_summary').join();
    const { key: wrong } = await owner.admin.key(OWNER, { scopes: others });
    const refused = await owner.pod.get(`/api/v3${path(WINDOW)}`, wrong);
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'INSUFFICIENT_SCOPE']);
    const token = await logIn(owner.pod, OWNER);
    const own = await callApi(owner.pod, 'GET', `/v1${path(WINDOW)}`, { token });
    assert.equal(own.text, (await get(WINDOW)).text);
    await owner.admin.run('key:revoke', '--id', String(id));
    const revoked = await owner.pod.get(`/api/v3${path(WINDOW)}`, key);
    assert.deepEqual([revoked.status, revoked.body.error.code], [403, 'API_KEY_REVOKED']);
  });

  test('is a 500 that names the times of damaged points, and goes on behind their device', async () => {
    const damaged = devices[2]?.imei ?? '';
    const flip = () => owner.sql`
      update packed_points set checksum = -checksum where device_id = (select id from device where imei = ${damaged})`;
    await flip();
    const { status, body } = await owner.pod.get(`/api/v3${path(`${WINDOW}&devices=${damaged}`)}`, owner.key);
    assert.deepEqual([status, body.error.code], [500, 'INTERNAL_ERROR']);
    assert.match(body.error.message, /^the points from .* are damaged/);
    const behind = await get(`${WINDOW}&after=${damaged}&format=ndjson`);
    assert.equal(behind.status, 200);
    await flip();
  });
});
