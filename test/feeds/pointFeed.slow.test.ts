import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { get as httpGet } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { before, describe, test } from 'node:test';
import { AppliedTransactions } from '../../src/changelog/appliedTransactions.memory.ts';
import { Cursors } from '../../src/feeds/cursors.ts';
import { FEED_POINTS_MAX } from '../../src/feeds/pointFeedCall.ts';
import { DAY_MS, HOUR_MS, weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import { callBeside } from '../support/beside.ts';
import { packPoints } from '../support/history/packPoints.ts';
import { bareExchange, rawRequest } from '../support/http/http.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { type PodAddress, startPod } from '../support/pod.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const OTHER = 'other@example.com';
const MEMBER = 'member@example.com';
const SEED = Number(process.env['FLEET_SEED'] ?? 1);
const random = seededRandom(SEED);
const upTo = (n: number): number => Math.floor(random() * n);
const imeiOf = (n: number) => String(350_000_000_000_000 + n);
/** More than are read with one statement. */
const IMEIS = Array.from({ length: 260 }, (_, n) => imeiOf(n + 1));
const SLOW = imeiOf(1_001);
const FULL = imeiOf(1_002);
const FOREIGN = imeiOf(1_003);
const BEGIN_MS = Date.now() - 6 * DAY_MS;
/** Of these nothing is packed but what comes late. */
const NEW_IMEIS = new Set(IMEIS.slice(30));
/** Calls of a small account beside large ones. */
const ROUNDS = 5;

interface Line {
  readonly imei: string;
  readonly recorded_at: string;
  readonly received_at: string;
}

/** One call, with the header at its end. */
async function call(pod: PodAddress, key: string, cursor: string, query = '') {
  const url = `${pod.api}/api/v3/history/export?cursor=${cursor}${query}`;
  return new Promise<{ status: number; text: string; next: string | undefined }>((resolve, reject) => {
    const request = httpGet(url, { agent: false, headers: { 'X-API-Key': key } }, (response) => {
      buffer(response).then((bytes) => {
        const status = response.statusCode ?? 0;
        resolve({ status, text: bytes.toString(), next: response.trailers['x-next-cursor'] });
      }, reject);
    });
    request.on('error', reject);
  });
}

/** Follows the points of a key from now on. */
class Follower {
  readonly #key: string;
  readonly points: string[] = [];
  cursor = '';

  constructor(key: string) {
    this.#key = key;
  }

  /** Calls until there is no more; returns how often. */
  async follow(pod: PodAddress): Promise<number> {
    for (let calls = 1; ; calls++) {
      const { status, text, next } = await call(pod, this.#key, this.cursor);
      assert.equal(status, 200, text);
      const lines = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      const { cursor, has_more } = lines.pop();
      assert.equal(cursor, next);
      for (const { imei, recorded_at, received_at } of lines as Line[]) {
        assert.ok(Math.abs(Date.parse(received_at) - Date.now()) < HOUR_MS);
        this.points.push(`${imei} ${recorded_at}`);
      }
      this.cursor = String(cursor);
      if (!has_more) return calls;
    }
  }
}

describe(`the feed of points (seed ${SEED})`, () => {
  let otherKey = '';
  const owner = ownerPod(
    {
      prepare: async ({ admin, sql }) => {
        await admin.run('account:update', '--email', OWNER, '--organization', 'Fleet');
        await admin.account(MEMBER, { organization: 'Fleet' });
        await admin.account(OTHER);
        await admin.importDevices(
          OWNER,
          [...IMEIS.filter((_, n) => n % 2 === 0), SLOW, FULL].map((imei) => ({ imei })),
        );
        const shared = IMEIS.filter((_, n) => n % 2 === 1);
        await admin.importDevices(
          MEMBER,
          shared.map((imei) => ({ imei, organization: true })),
        );
        await admin.device(OTHER, FOREIGN);
        // Whoever stores a point of one device waits, with its points written, for as long as somebody holds this lock.
        await sql.unsafe(`
          create function wait_for_test() returns trigger language plpgsql as $$
          begin
            if exists (select from device where id = new.device_id and imei = '${SLOW}') then
              perform pg_advisory_xact_lock(4711);
            end if;
            return new;
          end $$;
          create trigger wait_for_test before update on device_state for each row execute function wait_for_test()`);
      },
    },
    async ({ admin }) => {
      otherKey = (await admin.key(OTHER)).key;
    },
  );
  const newest = new Map<string, number>();
  let pod: PodAddress;
  let key: string;
  before(() => {
    ({ pod, key } = owner);
  });

  const pointAt = (imei: string, recorded_at: number) => ({ imei, recorded_at, latitude: 41, longitude: 12 });
  /** A point that comes in time. */
  const nextPoint = (imei: string) => {
    const beginMs = NEW_IMEIS.has(imei) ? Date.now() - DAY_MS : BEGIN_MS;
    const ms = (newest.get(imei) ?? beginMs) + 1 + upTo(600_000);
    newest.set(imei, ms);
    return pointAt(imei, ms);
  };
  const latePoint = (imei: string) => pointAt(imei, (newest.get(imei) ?? BEGIN_MS) - upTo(5 * DAY_MS));

  /** All that is stored of the key, as rows or packed. */
  async function stored(): Promise<string[]> {
    const from = new Date(BEGIN_MS - 12 * DAY_MS).toISOString();
    const { text } = await pod.get(`/api/v3/history/export?from=${from}`, key);
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => {
        const { imei, recorded_at } = JSON.parse(line) as Line;
        return `${imei} ${recorded_at}`;
      });
  }

  /** What was stored since `before`. */
  async function assertAll(follower: Follower, before: readonly string[]): Promise<void> {
    const known = new Set(before);
    const expected = (await stored()).filter((point) => !known.has(point));
    const counts = (points: readonly string[]) =>
      new Map([...Map.groupBy(points, (point) => point)].map(([point, each]) => [point, each.length]));
    const [had, wanted] = [counts(follower.points), counts(expected)];
    const wrong = [...new Set([...had.keys(), ...wanted.keys()])].filter(
      (point) => had.get(point) !== wanted.get(point),
    );
    assert.deepEqual(
      wrong.slice(0, 10).map((point) => [point, had.get(point) ?? 0, wanted.get(point) ?? 0]),
      [],
      `${wrong.length} of ${wanted.size}`,
    );
  }

  test('brings every point once, in time or late, whatever came before, and wherever it is packed', async () => {
    await pod.points(IMEIS.flatMap((imei) => [nextPoint(imei), nextPoint(imei)]));
    const before = await stored();
    const second = await startPod(owner.url);
    const pods: readonly PodAddress[] = [pod, second];
    try {
      const follower = new Follower(key);
      await follower.follow(pod);
      assert.deepEqual(follower.points, []);
      for (let round = 0; round < runs(3); round++) {
        const batch = Array.from({ length: upTo(300) }, () => {
          const imei = IMEIS[upTo(upTo(2) === 0 ? 5 : IMEIS.length)] as string;
          return upTo(4) === 0 ? latePoint(imei) : nextPoint(imei);
        });
        // Some are sent twice.
        batch.push(...batch.slice(0, upTo(20)));
        const to = pods[upTo(2)] as PodAddress;
        await Promise.all([
          to.points(batch),
          upTo(2) === 0 ? follower.follow(pods[upTo(2)] as PodAddress) : null,
        ]);
        if (round % 3 === 2) await packPoints(owner.sql);
        // Points that came long ago are packed; those that come late to the same days are rows beside them.
        if (round === 1) {
          await follower.follow(pod);
          // As if nobody had followed for a moment in which nothing is stored.
          await owner.sql`update followed_world set until = until - interval '2 days'`;
          assert.ok((await packPoints(owner.sql)).points > 0);
          await owner.sql`update followed_world set until = until + interval '2 days'`;
        }
      }
      await follower.follow(pod);
      await follower.follow(second);
      await assertAll(follower, before);
    } finally {
      await second.stop();
    }
  });

  for (const isLate of [false, true]) {
    test(`brings a ${isLate ? 'late ' : ''}point whose transaction commits late, once, and waits for none`, async () => {
      await pod.points([nextPoint(SLOW), nextPoint(SLOW)]);
      const before = await stored();
      const follower = new Follower(key);
      await follower.follow(pod);
      const release = await holdTransaction(owner.sql, (tx) => tx`select pg_advisory_xact_lock(4711)`);
      const slow = pod.points([isLate ? pointAt(SLOW, (newest.get(SLOW) ?? 0) - 7) : nextPoint(SLOW)]);
      await waitFor(async () => {
        const [row] = await owner.sql<{ n: number }[]>`
          select count(*)::int as n from pg_locks where locktype = 'advisory' and objid = 4711 and not granted`;
        return row?.n === 1;
      });
      await pod.points(IMEIS.slice(0, 3).map(nextPoint));
      await follower.follow(pod);
      assert.equal(follower.points.length, 3);
      await release();
      await slow;
      await pod.points(IMEIS.slice(0, 3).map(nextPoint));
      await follower.follow(pod);
      assert.equal(follower.points.length, 7);
      await follower.follow(pod);
      await assertAll(follower, before);
    });
  }

  test('gives a bounded number of points in a call, and the rest with the next', async () => {
    await pod.points([nextPoint(FULL)]);
    const before = await stored();
    const follower = new Follower(key);
    await follower.follow(pod);
    const firstMs = newest.get(FULL) ?? 0;
    const count = FEED_POINTS_MAX + 1_000;
    await owner.sql`
      insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites,
        received_at, late)
      select (select id from device where imei = ${FULL}), ${new Date(firstMs)}::timestamptz + make_interval(secs => n),
        41, 12, 0, 0, 0, 9, date_trunc('milliseconds', now()), false
      from generate_series(1, ${count}) n`;
    newest.set(FULL, firstMs + (count + 1) * 1_000);
    // More late points than one statement reads, of one device and of two.
    const late = [0, 1].flatMap((n) => Array.from({ length: 2_100 }, () => latePoint(IMEIS[n] as string)));
    await pod.points([nextPoint(FULL), ...IMEIS.map(latePoint), ...late]);
    const calls = await follower.follow(pod);
    assert.ok(calls >= 2, `${calls} calls`);
    await follower.follow(pod);
    await assertAll(follower, before);
  });

  test('holds up nobody else: others follow their own points as they send them', async () => {
    const { next: heavy } = await call(pod, key, '');
    const firstMs = (newest.get(FULL) ?? BEGIN_MS) + 1_000;
    const count = FEED_POINTS_MAX / 10;
    await ensureWeeks(owner.sql, POSITIONS, [weekStartMs(firstMs), weekStartMs(firstMs + count * 1_000)]);
    await owner.sql`
      insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites,
        received_at, late)
      select (select id from device where imei = ${FULL}), ${new Date(firstMs)}::timestamptz + make_interval(secs => n),
        41, 12, 0, 0, 0, 9, date_trunc('milliseconds', now()), false
      from generate_series(0, ${count - 1}) n`;
    newest.set(FULL, firstMs + count * 1_000);
    await pod.points([...IMEIS.map(nextPoint), nextPoint(FULL)]);
    let { next: cursor } = await call(pod, otherKey, '');
    let sent = 0;
    await callBeside({
      attackers: 2,
      attack: async () => {
        const { status, text } = await call(pod, key, heavy ?? '');
        assert.deepEqual([status, text.split('\n').length - 2], [200, count + IMEIS.length + 1]);
      },
      rounds: ROUNDS,
      victim: async () => {
        await pod.points([nextPoint(FOREIGN)]);
        const { status, text, next } = await call(pod, otherKey, cursor ?? '');
        assert.equal(status, 200);
        sent += text.split('\n').length - 2;
        cursor = next;
        assert.equal((await pod.get('/api/v3/devices/nearest?lat=41&lng=12', otherKey)).status, 200);
      },
    });
    sent += (await call(pod, otherKey, cursor ?? '')).text.split('\n').length - 2;
    assert.equal(sent, ROUNDS);
  });

  test('is CSV with the cursor in the trailer', async () => {
    const { next } = await call(pod, key, '', '&format=csv');
    await pod.points([nextPoint(IMEIS[0] as string)]);
    const { text, next: behind } = await call(pod, key, next ?? '', '&format=csv');
    const lines = text.split('\r\n');
    assert.equal(lines.length, 3);
    assert.match(lines[0] ?? '', /^imei,.*,odometer_km,received_at$/);
    assert.match(lines[1] ?? '', new RegExp(`^${IMEIS[0]},.*Z$`));
    assert.equal((await call(pod, key, behind ?? '', '&format=csv')).text.split('\r\n').length, 2);
  });

  test('has no trailer for HTTP/1.0, as some proxies speak it, and none for HEAD; the last line has the cursor', async () => {
    const path = '/api/v3/history/export?cursor=';
    const old = await bareExchange(pod.api, [`GET ${path} HTTP/1.0\r\nX-API-Key: ${key}\r\n\r\n`]);
    assert.match(old, /^HTTP\/1\.1 200 .*\r\n\r\n\{"cursor":"[^"]+","has_more":false\}\n$/s);
    const head = await rawRequest(pod.api, path, { method: 'HEAD', headers: { 'X-API-Key': key } });
    assert.deepEqual(
      [head.status, head.headers['content-type'], head.text],
      [200, 'application/x-ndjson', ''],
    );
    for (const answer of [old, JSON.stringify(head.headers)]) assert.doesNotMatch(answer, /trailer/i);
  });

  test('has only the chosen devices, and none of others', async () => {
    const [, second, third] = IMEIS as [string, string, string];
    const { next } = await call(pod, key, '');
    await pod.points([second, third, FOREIGN].map(nextPoint));
    const chosen = await call(pod, key, next ?? '', `&devices=${second},${FOREIGN}`);
    assert.deepEqual(
      chosen.text
        .split('\n')
        .slice(0, -2)
        .map((line) => JSON.parse(line).imei),
      [second],
    );
    const all = await call(pod, key, next ?? '');
    assert.deepEqual(
      all.text
        .split('\n')
        .slice(0, -2)
        .map((line) => JSON.parse(line).imei),
      [second, third],
    );
  });

  test('refuses cursors that are not its own with 400, and old ones with 410', async () => {
    const { next } = await call(pod, key, '');
    const events = (await pod.get('/api/v3/events/feed', key)).body.meta.cursor;
    for (const cursor of ['x', `${next}x`, events])
      assert.equal((await call(pod, key, cursor)).status, 400, cursor);
    assert.equal((await call(pod, otherKey, next ?? '')).status, 400, 'of another account');
    for (const query of ['&from=2026-01-01', '&to=2026-01-01', `&after=${IMEIS[0]}`, '&format=parquet'])
      assert.equal((await call(pod, key, next ?? '', query)).status, 400, query);
    assert.equal((await pod.get(`/api/v3/events/feed?cursor=${next}`, key)).status, 400);
    // A long read hands on what it had seen at its beginning.
    const cursors = new Cursors(
      createSecretKey(Buffer.alloc(32, 7)),
      new AppliedTransactions(Date.now),
      Date.now,
    );
    const opened = cursors.opened(next ?? '');
    assert.ok(opened?.points);
    const { points } = opened;
    const seenBefore = (ms: number) =>
      cursors.sealed({ ...opened, points: { ...points, seen: { ...points.seen, atMs: Date.now() - ms } } });
    assert.equal((await call(pod, key, seenBefore(35 * HOUR_MS))).status, 200);
    assert.equal((await call(pod, key, seenBefore(37 * HOUR_MS))).status, 410);
    await owner.admin.run('account:update', '--email', OWNER, '--organization', 'none');
    await waitFor(async () => (await call(pod, key, next ?? '')).status === 410);
  });
});
