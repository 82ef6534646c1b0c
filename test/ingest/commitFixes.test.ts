import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decodePositionUpdates } from '../../src/devices/positionUpdates.ts';
import { weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { type IngestBench, type IngestSide, ingestBench } from '../support/ingest/ingestBench.ts';
import { commitPoints } from './commitPoints.ts';

const NOW_MS = Date.now();
const MOVED_AT_MS = NOW_MS + 123_456;

/** The ids of the devices by IMEI, with the partitions of this week made. */
async function prepare({ imeis, sides }: IngestBench): Promise<[side: IngestSide, ids: number[]]> {
  const [side] = sides as [IngestSide];
  const rows = await side.sql<{ id: number; imei: string }[]>`select id, imei from device`;
  await ensureWeeks(side.sql, POSITIONS, [weekStartMs(NOW_MS)]);
  return [side, imeis.map((imei) => rows.find((row) => row.imei === imei)?.id as number)];
}

/** Everything a commit may touch, as text. */
async function everything({ sql }: IngestSide): Promise<string> {
  const tables = await Promise.all([
    sql`select * from position order by device_id, recorded_at`,
    sql`select * from device_state order by device_id`,
    sql`select * from fleet_event order by id`,
    sql`select kind, payload from change order by xid, id`,
  ]);
  return JSON.stringify(tables);
}

const feed = async ({ sql }: IngestSide) => {
  const rows = await sql<{ payload: Buffer; stays: string; xid: string }[]>`
    select payload, stays, xid::text from change where kind = 'positions' order by change.xid, id`;
  return rows.map(({ payload, stays, xid }) => [...decodePositionUpdates(payload, stays, Number(xid))]);
};

describe('a transaction of points', () => {
  test('stores points, states and events, and writes the new positions into the feed', async (t) => {
    const bench = await ingestBench(t, { devices: 2 });
    const [side, [a, b]] = (await prepare(bench)) as [IngestSide, [number, number]];
    const [imeiA, imeiB] = bench.imeis as [string, string];
    const committed = await commitPoints(
      side,
      [
        { deviceId: b, fix: fixOf(imeiB, NOW_MS, { odometerKm: 7.5, altitudeM: -3, speedKmh: null }) },
        { deviceId: a, fix: fixOf(imeiA, NOW_MS, { rfid: 'card' }) },
        { deviceId: a, fix: fixOf(imeiA, NOW_MS - 1_000, { lat: -1 }) },
      ],
      MOVED_AT_MS,
    );
    assert.deepEqual(committed.outcomes, ['accepted', 'accepted', 'accepted']);
    assert.equal(committed.eventCount, 1);
    const place = { lat: 41.9, lng: 12.5, recordedAtMs: NOW_MS, movedAtMs: MOVED_AT_MS };
    const motion = { headingDeg: 0, ignition: null, revision: 1, xid: committed.xid };
    const updates = [
      {
        deviceId: a,
        motion,
        position: { ...place, altitudeM: 0, speedKmh: 30, odometerKm: null },
        stays: null,
      },
      {
        deviceId: b,
        motion,
        position: { ...place, altitudeM: -3, speedKmh: 0, odometerKm: 7.5 },
        stays: null,
      },
    ].sort((x, y) => x.deviceId - y.deviceId);
    assert.deepEqual(
      committed.positionUpdates.toSorted((x, y) => x.deviceId - y.deviceId),
      updates,
    );
    const [row, ...more] = await feed(side);
    assert.deepEqual(more, []);
    assert.deepEqual(
      row?.toSorted((x, y) => x.deviceId - y.deviceId),
      updates,
    );
    const states = await side.sql<{ moved_at: Date }[]>`select moved_at from device_state`;
    assert.deepEqual(
      states.map(({ moved_at }) => moved_at.getTime()),
      [MOVED_AT_MS, MOVED_AT_MS],
    );
  });

  test('that fails in its last part leaves nothing behind', async (t) => {
    const bench = await ingestBench(t, { devices: 2 });
    const [side, [a, b]] = (await prepare(bench)) as [IngestSide, [number, number]];
    const [imeiA, imeiB] = bench.imeis as [string, string];
    await commitPoints(side, [{ deviceId: a, fix: fixOf(imeiA, NOW_MS) }], NOW_MS);
    const before = await everything(side);
    const points = [
      { deviceId: a, fix: fixOf(imeiA, NOW_MS + 1) },
      { deviceId: a, fix: fixOf(imeiA, NOW_MS - 1) },
      { deviceId: b, fix: fixOf(imeiB, NOW_MS, { alarms: ['nul\u0000'] }) },
    ];
    await assert.rejects(commitPoints(side, points, NOW_MS));
    assert.equal(await everything(side), before);
  });

  test('that moves no device writes nothing into the feed and leaves the states alone', async (t) => {
    const bench = await ingestBench(t);
    const [side, [a]] = (await prepare(bench)) as [IngestSide, [number]];
    const [imei] = bench.imeis as [string];
    const commit = (ms: number, lat: number) =>
      commitPoints(side, [{ deviceId: a, fix: fixOf(imei, ms, { lat }) }], MOVED_AT_MS);
    await commit(NOW_MS, 1);
    // A late point is stored, so it counts for the rate of its device.
    const stateOf = async () => {
      const [{ rate_until: rateUntil, ...state } = {}] = await side.sql`select * from device_state`;
      assert.ok(rateUntil instanceof Date);
      return state;
    };
    const state = await stateOf();
    assert.deepEqual((await commit(NOW_MS, 2)).outcomes, ['duplicate']);
    assert.deepEqual((await commit(NOW_MS - 5, 3)).outcomes, ['late']);
    assert.deepEqual((await commit(NOW_MS - 5, 4)).outcomes, ['duplicate']);
    assert.deepEqual(await stateOf(), state);
    assert.equal((await feed(side)).length, 1);
    const stored = await side.sql<{ latitude: number; late: boolean; received_at: Date }[]>`
      select latitude, late, received_at from position order by recorded_at`;
    assert.deepEqual(
      stored.map(({ latitude, late }) => [latitude, late]),
      [
        [3, true],
        [1, false],
      ],
    );
    const [late, first] = stored.map(({ received_at }) => received_at.getTime());
    assert.ok((late ?? 0) > (first ?? Number.POSITIVE_INFINITY), 'each was received when it came');
  });

  test('gives an event to the world that owns the device at that moment', async (t) => {
    const bench = await ingestBench(t);
    const [side, [a]] = (await prepare(bench)) as [IngestSide, [number]];
    const [imei] = bench.imeis as [string];
    const commit = (ms: number, rfid: string) =>
      commitPoints(side, [{ deviceId: a, fix: fixOf(imei, ms, { rfid }) }], ms);
    await commit(NOW_MS, 'before');
    const [other] = await side.sql<{ id: number }[]>`insert into world default values returning id`;
    await side.sql`update device set world_id = ${other?.id ?? 0}`;
    await commit(NOW_MS + 1, 'after');
    const events = await side.sql<{ tag: string; elsewhere: boolean }[]>`
      select data->>'rfid' as tag, world_id = ${other?.id ?? 0} as elsewhere from fleet_event order by id`;
    assert.deepEqual(
      [...events],
      [
        { tag: 'before', elsewhere: false },
        { tag: 'after', elsewhere: true },
      ],
    );
  });
});
