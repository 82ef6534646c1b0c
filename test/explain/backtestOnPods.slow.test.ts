import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startAreaPods } from '../support/http/areaPods.ts';
import type { AreaApi } from '../support/http/areas.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';

// Seeded histories on two pods: what a backtest of an area that exists finds is what was recorded when the points came.

const SEED = Number(process.env['FLEET_SEED'] ?? 5);
const HISTORIES = IS_TORTURE ? 1_000 : 2;
const DEVICES = 3;
const DWELLS = [0, 30, 120, 600];
const MINUTE_MS = 60_000;
const HISTORY_MS = 4 * 60 * MINUTE_MS;

type Random = () => number;
interface Point {
  readonly imei: string;
  readonly recorded_at: number;
  readonly latitude: number;
  readonly longitude: number;
}

const bodyOf = (random: Random, name: string, lat: number, lng: number): object => {
  const corners = 3 + Math.floor(random() * 98);
  const points = Array.from({ length: corners }, (_, n) => ({
    lat: lat + 0.006 * Math.sin((2 * Math.PI * n) / corners),
    lng: lng + 0.006 * Math.cos((2 * Math.PI * n) / corners),
  }));
  const kinds = [
    { type: 'circle', center: { lat, lng }, radius_m: 200 + Math.floor(random() * 800) },
    { type: 'polygon', points },
    { type: 'polyline', buffer_m: 300, points: [-0.01, 0.01].map((east) => ({ lat, lng: lng + east })) },
  ];
  return { name, ...kinds[Math.floor(random() * kinds.length)] };
};

/** A device that comes, stays and goes: points in the order of their times. */
function drive(random: Random, imei: string, startMs: number, lat: number, lng: number): Point[] {
  const points: Point[] = [];
  let isInside = random() < 0.5;
  for (let at = startMs; at < startMs + HISTORY_MS; at += 1_000 + Math.floor(random() * 4 * MINUTE_MS)) {
    if (random() < 0.4) isInside = !isInside;
    const away = isInside ? 0.001 : 0.003 + random() * 0.3;
    points.push({
      imei,
      recorded_at: at,
      latitude: lat + away * (random() - 0.5),
      longitude: lng + away * (random() - 0.5),
    });
  }
  return points;
}

/**
 * All points in batches of any size, each to any of the pods; a batch has its points in any order. Now and then a point
 * comes late, which the engine does not evaluate.
 */
async function send(random: Random, sides: readonly AreaApi[], points: readonly Point[]): Promise<void> {
  const inOrder = points.toSorted((a, b) => a.recorded_at - b.recorded_at);
  for (let at = 0; at < inOrder.length; ) {
    const size = 1 + Math.floor(random() ** 3 * 60);
    const batch = inOrder.slice(at, at + size);
    at += size;
    const side = sides[random() < 0.5 ? 0 : 1] as AreaApi;
    const { accepted, late } = await side.pod.points(batch.toReversed());
    assert.deepEqual([accepted, late], [batch.length, 0]);
    const [oldest] = batch;
    if (oldest === undefined || random() < 0.6 || batch.filter(({ imei }) => imei === oldest.imei).length < 2)
      continue;
    const missed = {
      ...oldest,
      recorded_at: oldest.recorded_at + 1,
      latitude: oldest.latitude + 0.01 * random(),
    };
    assert.equal((await side.pod.points([missed])).late, 1);
  }
}

test(`backtests of ${HISTORIES} histories are what was recorded (seed ${SEED})`, {
  skip: skipWithoutRedis(),
}, async (t) => {
  const { admin, apis } = await startAreaPods(t);
  let eventCount = 0;
  const devices = Array.from({ length: HISTORIES * DEVICES }, (_, n) => String(350_000_000_000_000 + n));
  await admin.importDevices(
    'owner@example.com',
    devices.map((imei, n) => ({ imei, organization: n % 2 === 0 })),
  );
  const random = seededRandom(SEED);
  for (let history = 0; history < HISTORIES; history++) {
    // Apart from each other, so that the devices of one history are in the areas of that one only.
    const [lat, lng] = [-60 + (history % 100) * 1.2, -170 + Math.floor(history / 100) * 5 + (history % 3)];
    const imeis = devices.slice(history * DEVICES, (history + 1) * DEVICES);
    const draft = bodyOf(random, `History ${history}`, lat, lng);
    const areas: { id: number; dwellSeconds: number }[] = [];
    for (const dwellSeconds of DWELLS) {
      const id = await (apis[random() < 0.5 ? 0 : 1] as AreaApi).make({
        ...draft,
        dwell_seconds: dwellSeconds,
      });
      areas.push({ id, dwellSeconds });
    }
    if (random() < 0.3) await admin.run('area:share', '--id', String(areas[1]?.id));
    const startMs = Date.now() - HISTORY_MS - Math.floor(random() * 20 * 86_400_000);
    await send(
      random,
      apis,
      imeis.flatMap((imei) => drive(random, imei, startMs + Math.floor(random() * MINUTE_MS), lat, lng)),
    );

    const fromMs = random() < 0.3 ? startMs : startMs + Math.floor(random() * HISTORY_MS);
    const from = new Date(fromMs).toISOString();
    const to = new Date(fromMs + Math.floor(random() * HISTORY_MS * 1.5)).toISOString();
    const named = random() < 0.5 ? {} : { devices: imeis };
    const side = apis[random() < 0.5 ? 0 : 1] as AreaApi;
    const backtest = async (body: object) => {
      const reply = await side.send('POST', '/backtest', { body: { from, to, ...named, ...body } });
      assert.equal(reply.status, 200, reply.text);
      return reply.body.data;
    };
    const recordedOf = async (id: number) => {
      const { body } = await side.get(`/${id}/events?limit=200&from=${from}&to=${to}`);
      assert.ok(body.data.length < 200);
      const events = body.data as (Event & { id: number; area_id: number })[];
      return events
        .map(({ id: _, area_id: __, ...event }) => event)
        .sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    };
    const drafted = await backtest({ area: draft, dwell_seconds: DWELLS });
    for (const [n, { id }] of areas.entries()) {
      const recorded = await recordedOf(id);
      eventCount += recorded.length;
      const [live] = await backtest({ area_id: id });
      const plain = (events: (Event & { area_id: number | null })[]) =>
        events.map(({ area_id: _, ...event }) => event);
      assert.deepEqual(plain(live.events), recorded, `history ${history}, the live area`);
      assert.deepEqual(live.against, { same: recorded.length, new: 0, gone: 0 });
      assert.deepEqual(plain(drafted[n].events), recorded, `history ${history}, a fleet with another dwell`);
      const all = await backtest({ area_id: id, dwell_seconds: DWELLS });
      for (const [k, item] of all.entries()) {
        const other = await recordedOf(areas[k]?.id as number);
        assert.deepEqual(plain(item.events), other);
        const keys = new Set(recorded.map(placeOf));
        const same = other.filter((event: Event) => keys.has(placeOf(event))).length;
        assert.deepEqual(item.against, { same, new: other.length - same, gone: recorded.length - same });
      }
    }
  }
  assert.ok(eventCount > HISTORIES * 5, `only ${eventCount} events were recorded: the histories say little`);
});

interface Event {
  readonly device: string;
  readonly event: string;
  readonly timestamp: string;
}
const placeOf = ({ timestamp, device, event }: Event): string => `${timestamp} ${device} ${event}`;
