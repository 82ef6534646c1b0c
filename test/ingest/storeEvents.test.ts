import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import type { GeofenceEventAt } from '../../src/ingest/evaluateFixes.ts';
import { storeEvents } from '../../src/ingest/storeEvents.sql.ts';
import { Subscriptions, Tenancy } from '../../src/ingest/watchers.memory.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { countLockWaiters, holdTransaction } from '../support/postgres/holdTransaction.ts';
import { waitFor } from '../support/waitFor.ts';
import { startDeliveryDatabase } from '../support/webhooks/deliveryDatabase.ts';

const NOW_MS = Date.now();
const [WORLD, AREA] = [1, 7];
const HERE = { lat: 41.9, lng: 12.5 };

function entryOf(deviceId: number): GeofenceEventAt {
  return {
    point: { deviceId, fix: fixOf(String(350_000_000_000_000 + deviceId), NOW_MS) },
    event: {
      ...{ direction: 'entry', worldId: WORLD, areaId: AREA, areaName: 'Depot' },
      ...{ enteredAtMs: NOW_MS, dwellSeconds: 0, position: HERE, occurredAtMs: NOW_MS },
    },
  };
}

/** Entries of more devices than are stored in one go. */
const entriesFrom = (deviceId: number): GeofenceEventAt[] =>
  Array.from({ length: 300 }, (_, n) => entryOf(deviceId + n));

test('large transactions that end the same shares, in whatever order, do not wait for each other', async (t) => {
  const { sql, accountId, endpoint } = await startDeliveryDatabase(t);
  const webhookId = await endpoint();
  const subscriptions = new Subscriptions();
  subscriptions.put({ id: webhookId, worldId: WORLD, events: ['*'] });
  const memory = { fleet: new Fleet(), areas: new AreaCatalog(), tenancy: new Tenancy(), subscriptions };
  const ports = { memory, server: { eventScope: 'scope' }, traces: null };
  // Of each share one vehicle is among the first of one transaction, the other among the last of the other one.
  for (const deviceIds of [
    [300, 1_001],
    [1, 1_300],
  ]) {
    await sql`
      insert into share (account_id, fingerprint, device_ids, until_area_id, delay_seconds, hide, show, expires_at)
      values (${accountId}, sha256(${String(deviceIds)}::bytea), ${`{${deviceIds}}`}::bigint[], ${AREA}, 0, '[]', '{}',
        now() + interval '1 hour')`;
  }
  // Both stop at their first deliveries.
  const release = await holdTransaction(
    sql,
    (tx) => tx`select from webhook where id = ${webhookId} for update`,
  );
  const storing = [1, 1_001].map((deviceId) => {
    const entries = entriesFrom(deviceId);
    const locked = new Map(entries.map(({ point }) => [point.deviceId, { worldId: WORLD }]));
    return sql.begin((tx) => storeEvents(tx, ports, [], entries, locked, NOW_MS));
  });
  await waitFor(async () => (await countLockWaiters(sql)) === 2);
  await release();
  for (const { eventCount } of await Promise.all(storing)) assert.equal(eventCount, 300);
  const ended = await sql`select from share where end_reason = 'arrived'`;
  assert.equal(ended.length, 2);
});
