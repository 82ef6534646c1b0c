import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startAreaPods } from '../support/http/areaPods.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';

// Where an area is changed at the very time at which points come, only the record says which form held for them.

const SEED = Number(process.env['FLEET_SEED'] ?? 3);
const ROUNDS = IS_TORTURE ? 400 : 12;
const DWELLS = [0, 20, 60];
const CENTER = { lat: 45, lng: 9 };

test(`changes beside points: explanations have the recorded events (seed ${SEED})`, {
  skip: skipWithoutRedis(),
}, async (t) => {
  const { admin, apis } = await startAreaPods(t);
  const imei = '350000000000001';
  await admin.device('owner@example.com', imei);
  const random = seededRandom(SEED);
  const side = () => apis[random() < 0.5 ? 0 : 1];
  const id = await side().make({ name: 'Depot', type: 'circle', center: CENTER, radius_m: 300 });
  let atMs = Date.now() - 20 * 3_600_000;
  const startMs = atMs;
  for (let round = 0; round < ROUNDS; round++) {
    const points = Array.from({ length: 1 + Math.floor(random() * 6) }, () => {
      atMs += 1_000 * Math.ceil(random() * 40);
      const north = [0, 0.006, 0.05][Math.floor(random() * 3)] as number;
      return { imei, recorded_at: atMs, latitude: CENTER.lat + north, longitude: CENTER.lng };
    });
    const change =
      random() < 0.5
        ? { radius_m: random() < 0.5 ? 300 : 2_000 }
        : { dwell_seconds: DWELLS[Math.floor(random() * 3)] };
    const half = Math.ceil(points.length / 2);
    const [patched] = await Promise.all([
      side().patch(id, change),
      side()
        .pod.points(points.slice(0, half))
        .then(() => side().pod.points(points.slice(half))),
    ]);
    assert.equal(patched.status, 200);
  }

  const query = `device=${imei}&from=${new Date(startMs).toISOString()}&to=${new Date(atMs).toISOString()}`;
  const { body } = await side().get(`/${id}/explain?${query}&steps=true`);
  const recorded: { id: number; event: string; timestamp: string }[] = [];
  for (let more = true; more; ) {
    const page = await side().get(`/${id}/events?limit=200&offset=${recorded.length}&${query}`);
    recorded.push(...page.body.data);
    more = page.body.data.length === 200;
  }
  assert.ok(recorded.length > ROUNDS / 4, `only ${recorded.length} events`);
  const ids = body.data.visits.flatMap(({ event_ids: each }: { event_ids: number[] }) => each);
  assert.deepEqual(ids, recorded.map((event) => event.id).reverse());
  const decided = body.data.steps.filter(({ decision }: { decision: string }) =>
    /^(entry|exit)$/.test(decision),
  );
  assert.deepEqual(
    decided.map((step: { decision: string; recorded_at: string }) => [step.recorded_at, step.decision]),
    recorded.map(({ timestamp, event }) => [timestamp, event]).reverse(),
  );
});
