import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Ingest } from '../../src/ingest/ingest.ts';
import { localNotifier } from '../../src/redis/wakeUps.ts';
import { dearTrack } from '../support/ingest/dearTracks.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { AWAY, crowdedBench, HERE, type IngestSide, VICTIM_IMEI } from '../support/ingest/ingestBench.ts';

const NOW_MS = Date.now();

/** Areas HERE of an owner with four devices. */
const startSetup = (t: TestContext, areas: number, body: object) =>
  crowdedBench(t, NOW_MS, { devices: 4, areas, body });

const commits = async ({ sql }: IngestSide): Promise<number> =>
  (await sql`select from change where kind = 'positions'`).length;

describe('a point in more areas than others may wait for', () => {
  /** With an event each they are more work than a device may be beside others. */
  const MANY = 500;

  test('is stored after those that came with it, each of its events once and in their order', async (t) => {
    const { side, imeis } = await startSetup(t, MANY, {});
    const [heavy = '', ...others] = imeis;
    const reported: string[] = [];
    const store = async (name: string, imei: string, n: number, place = HERE) => {
      assert.deepEqual(await side.ingest.store([fixOf(imei, NOW_MS + n, place)]), ['accepted']);
      reported.push(name);
    };
    // Each of the others has one of the transactions that may be open at once, so the rest comes together in the next.
    await Promise.all([
      ...others.map((imei) => store('other', imei, 0, AWAY)),
      store('heavy', heavy, 0),
      store('beside', VICTIM_IMEI, 1),
      store('heavy, later', heavy, 1, AWAY),
      store('beside, later', VICTIM_IMEI, 2),
    ]);
    const orderOf = (...names: string[]) => reported.filter((name) => names.includes(name));
    assert.deepEqual(orderOf('heavy', 'beside', 'heavy, later'), ['beside', 'heavy', 'heavy, later']);
    assert.deepEqual(orderOf('beside', 'beside, later'), ['beside', 'beside, later']);
    const events = await side.sql<{ area_id: number; direction: string }[]>`
      select area_id, direction from fleet_event order by id`;
    assert.deepEqual(
      events.map(({ area_id, direction }) => `${direction} ${area_id}`),
      ['entry', 'exit'].flatMap((direction) =>
        Array.from({ length: MANY }, (_, n) => `${direction} ${n + 1}`),
      ),
    );
  });

  test('a batch of more than one transaction may do is stored in parts, none of it late, and answered once', async (t) => {
    const { side, imeis } = await startSetup(t, 1_000, { dwell_seconds: 86_400 });
    const [heavy = '', other = ''] = imeis;
    const before = await commits(side);
    const batch = Array.from({ length: 300 }, (_, n) => fixOf(heavy, NOW_MS + n, HERE));
    const mixed = [...batch.toReversed(), fixOf(other, NOW_MS, AWAY), batch[150] as (typeof batch)[number]];
    const outcomes = await side.ingest.store(mixed);
    assert.deepEqual(
      outcomes,
      mixed.map((_, n) => (n === 301 ? 'duplicate' : 'accepted')),
    );
    const parts = (await commits(side)) - before;
    assert.ok(parts >= 3 && parts <= 30, `${parts} transactions`);
    const [row] = await side.sql<{ points: number; stays: string }[]>`
      select (select count(*)::int from position p where p.device_id = d.id) as points, stays
      from device d join device_state s on s.device_id = d.id where d.imei = ${heavy}`;
    assert.equal(row?.points, 301);
    const stays = JSON.parse(row?.stays ?? '') as [number, number, null][];
    assert.equal(stays.length, 1_000);
    assert.ok(stays.every(([, since, confirmed]) => since === NOW_MS && confirmed === null));
  });

  test('a batch of more events than one transaction may have, without any area, is stored in parts too', async (t) => {
    const { side, imeis } = await startSetup(t, 0, {});
    const [imei = ''] = imeis;
    const alarmsOf = (n: number) => Array.from({ length: 100 }, (_, a) => `${n % 2}${a}`);
    const before = await commits(side);
    const batch = Array.from({ length: 230 }, (_, n) => fixOf(imei, NOW_MS + n, { alarms: alarmsOf(n) }));
    assert.ok((await side.ingest.store(batch)).every((outcome) => outcome === 'accepted'));
    assert.equal((await commits(side)) - before, 2);
    const [row] = await side.sql<{ events: number; inOrder: boolean }[]>`
      select count(*)::int as events, array_agg(occurred_at order by id) = array_agg(occurred_at order by occurred_at)
        as "inOrder" from fleet_event`;
    assert.deepEqual(row, { events: 23_000, inOrder: true });
  });
});

describe('a point among areas that take long to evaluate', () => {
  const BESIDE = { lat: 0.001, lng: 12.5 };
  const AREAS = 150;
  const TRACK = dearTrack(BESIDE);

  test('holds up nobody who came with it, whatever number of areas it is, and is stored in the end', async (t) => {
    const { side, imeis, asked } = await startSetup(t, AREAS, TRACK);
    const [heavy = '', other = '', ...more] = imeis;
    const reported: string[] = [];
    const store = async (name: string, fixes: Parameters<typeof side.ingest.store>[0]) => {
      const outcomes = await side.ingest.store(fixes);
      assert.ok(outcomes.every((outcome) => outcome === 'accepted'));
      reported.push(name);
    };
    const points = Array.from({ length: 12 }, (_, n) => fixOf(heavy, NOW_MS + n, BESIDE));
    await Promise.all([
      // As many as there may be transactions; the others come together in the next one.
      ...[other, ...more].map((imei) => store('first', [fixOf(imei, NOW_MS, AWAY)])),
      store('heavy', points.toReversed()),
      store('heavy, later', [fixOf(heavy, NOW_MS + 100, AWAY)]),
      store('beside', [fixOf(VICTIM_IMEI, NOW_MS, BESIDE)]),
      store('of its world', [fixOf(other, NOW_MS + 1, AWAY)]),
    ]);
    assert.deepEqual(reported.slice(0, 5).toSorted(), ['beside', 'first', 'first', 'first', 'of its world']);
    assert.deepEqual(reported.slice(5), ['heavy', 'heavy, later']);
    // Each once, and a few that were asked in the transaction that it was put off from.
    assert.ok(asked() < 1.5 * points.length * AREAS, `${asked()} evaluations`);
    const [row] = await side.sql<{ times: Date[] }[]>`
      select array_agg(recorded_at order by recorded_at) as times from position p join device d on d.id = p.device_id
      where imei = ${heavy} and recorded_at >= ${new Date(NOW_MS)}`;
    assert.equal(row?.times.length, points.length + 1);
  });

  test('is refused beyond a bound, alone, and at once when it is sent again', async (t) => {
    const { side, imeis, asked } = await startSetup(t, AREAS, TRACK);
    const [heavy = ''] = imeis;
    const ports = ingestPorts(side);
    const ingest = new Ingest(ports, { pointWorkMs: 5, sharedWaitMs: 60_000 });
    const batch = [
      fixOf(heavy, NOW_MS, AWAY),
      fixOf(heavy, NOW_MS + 1, BESIDE),
      fixOf(heavy, NOW_MS + 2, AWAY),
    ];
    assert.deepEqual(await ingest.store(batch), ['accepted', 'too_complex', 'accepted']);
    const before = asked();
    assert.deepEqual(
      await ingest.store([fixOf(heavy, NOW_MS + 1, BESIDE)]),
      ['late'],
      'it is no longer evaluated',
    );
    assert.equal(asked(), before);
    const next = fixOf(heavy, NOW_MS + 10, BESIDE);
    assert.deepEqual(await ingest.store([next]), ['too_complex']);
    const refusedAt = asked();
    assert.deepEqual(await ingest.store([next]), ['too_complex']);
    assert.ok(asked() - refusedAt < AREAS, 'it is evaluated only until it is found too much for others');
  });

  test('is refused when points of others in its request have waited for it for long', async (t) => {
    const { side, imeis } = await startSetup(t, AREAS, TRACK);
    const [heavy = ''] = imeis;
    const ingest = new Ingest(ingestPorts(side), { pointWorkMs: 60_000, sharedWaitMs: 0 });
    const mixed = [fixOf(heavy, NOW_MS, BESIDE), fixOf(VICTIM_IMEI, NOW_MS, BESIDE)];
    assert.deepEqual(await ingest.store(mixed), ['too_complex', 'accepted']);
    assert.deepEqual(
      await ingest.store([fixOf(heavy, NOW_MS, BESIDE)]),
      ['accepted'],
      'its own request waits',
    );
  });

  function ingestPorts(side: IngestSide): ConstructorParameters<typeof Ingest>[0] {
    const nothing = () => undefined;
    const listeners = {
      onQueued: nothing,
      onOutboxFilled: nothing,
      notifier: localNotifier,
      onOutcomes: nothing,
    };
    return { ...side, clock: Date.now, ...listeners };
  }
});
