import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openSql } from '../../src/postgres/sql.ts';
import { dropNotifications } from '../support/http/dropNotifications.ts';
import { castEdits, MAILS, RoadEdits, type TimedEvent } from '../support/ingest/roadEdits.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';

const SEEDS = IS_TORTURE ? Array.from({ length: 10 }, (_, n) => (Date.now() % 100_000) + n) : [1];
const STEPS = IS_TORTURE ? 400 : 100;

describe('points and writes of every kind, one after the other, each through any of three pods', {
  skip: skipWithoutRedis(),
}, () => {
  for (const seed of SEEDS) {
    test(`without notifications and polling: exactly the events of a replay (seed ${seed})`, async (t) => {
      const { url } = await createDatabase(t);
      const redis = await startRedis(t);
      await dropNotifications(url, redis.url);
      t.mock.timers.enable({ apis: ['setInterval'] });
      const admin = adminOf(url, redis.url);
      const keys = await castEdits(admin);
      const env = { ...NO_LIMITS, REDIS_URL: redis.url };
      const pods = await Promise.all([0, 1, 2].map(() => startPod(url, { t, env })));
      const edits = new RoadEdits(() => pods, keys, admin, seededRandom(seed));
      for (let step = 0; step < STEPS; step++) await edits.step();
      assert.deepEqual(await storedEvents(url), edits.events.map(asStored));
      assert.ok(edits.events.length > 20, `only ${edits.events.length} events`);
    });
  }
});

/** All geofence events of a database, in the order of production. */
async function storedEvents(url: string): Promise<unknown[]> {
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  const rows = await sql`
    select e.device_imei as imei, e.area_id as "areaId", e.direction, e.occurred_at as "occurredAt",
           e.data->>'enteredAt' as "enteredAt", (e.data->'dwellSeconds')::int as "dwellSeconds",
           coalesce((select email from account a where a.world_id = e.world_id), 'everybody') as reader
    from fleet_event e where type = 'geofence' order by id`;
  await sql.end();
  return [...rows];
}

function asStored({ imei, areaId, direction, occurredAtMs, enteredAtMs, dwellSeconds, worldId }: TimedEvent) {
  return {
    imei,
    areaId,
    direction,
    occurredAt: new Date(occurredAtMs),
    enteredAt: new Date(enteredAtMs).toISOString(),
    dwellSeconds,
    reader: MAILS.get(worldId) ?? 'everybody',
  };
}
