import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { insertFleetEvents, type NewFleetEvent } from '../../src/ingest/storeEvents.sql.ts';
import { insertDeliveries, type NewDelivery } from '../../src/webhooks/delivery/claims.sql.ts';
import { fleetEventWebhookId, type Subscription } from '../../src/webhooks/delivery.ts';
import { countLeftOut } from '../../src/webhooks/pauses/leftOut.sql.ts';
import { type LeftOutPorts, makeLeftOut } from '../../src/webhooks/pauses/makeLeftOut.ts';
import { endPause, pauseWebhooks } from '../../src/webhooks/pauses/pauses.sql.ts';
import { meetLossyServer } from '../support/postgres/lossyServer.ts';
import { type DeliveryDatabase, startDeliveryDatabase } from '../support/webhooks/deliveryDatabase.ts';

const CHUNK = 500;

interface Setup extends Omit<DeliveryDatabase, 'ports'> {
  readonly worldId: number;
  readonly ports: LeftOutPorts;
  /** What ids of webhook events are made from now. */
  scope(): Promise<string>;
  pause(id: number): Promise<void>;
  resume(id: number, fromMs?: number): Promise<void>;
  /** Stores events, half an hour ago by their time, and returns their ids. */
  events(count: number, others?: Partial<NewFleetEvent>): Promise<number[]>;
  /** Makes chunks until nothing is left to be made. */
  makeAll(): Promise<void>;
  /** The ids of the events that an endpoint has deliveries of, in their order. */
  queued(id: number): Promise<number[]>;
}

async function startSetup(t: TestContext): Promise<Setup> {
  const database = await startDeliveryDatabase(t);
  const { sql, accountId } = database;
  const [account] = await sql<{ world_id: number }[]>`select world_id from account where id = ${accountId}`;
  const worldId = account?.world_id ?? 0;
  const ports: LeftOutPorts = {
    sql,
    fleet: new Fleet(),
    log: { info: () => undefined, warn: () => undefined },
    onQueued: () => undefined,
    onPaused: () => undefined,
  };
  const knownIds: number[] = [];
  const scopes = async (): Promise<string[]> => {
    const rows = await sql<
      { event_scope: string }[]
    >`select event_scope from server_start order by ordinal desc`;
    return rows.map(({ event_scope }) => event_scope);
  };
  return {
    ...database,
    worldId,
    ports,
    scope: async () => (await scopes())[0] ?? '',
    pause: async (id) => {
      await pauseWebhooks(sql, { accountId, worldId }, [{ webhookId: id, reason: 'endpoint_quota' }]);
      await sql`update webhook_left_out set from_at = from_at - interval '1 hour' where webhook_id = ${id}`;
    },
    resume: async (id, fromMs) => {
      await sql.begin((tx) => endPause(tx, accountId, id, fromMs ?? null));
      await sql`update webhook_left_out set to_at = to_at - interval '10 minutes' where webhook_id = ${id}`;
    },
    events: async (count, others = {}) => {
      const event: NewFleetEvent = {
        worldId,
        deviceId: 1,
        imei: '350000000000001',
        type: 'rfid',
        message: 'a card',
        data: { rfid: 'card' },
        occurredAtMs: Date.now(),
        ...others,
      };
      const ids = await sql.begin((tx) =>
        insertFleetEvents(
          tx,
          Array.from({ length: count }, () => event),
        ),
      );
      knownIds.push(...ids);
      await sql`
        update fleet_event set recorded_at = recorded_at - interval '30 minutes' where id = any(${ids}::bigint[])`;
      return ids;
    },
    makeAll: async () => {
      for (;;) {
        const chunk = await makeLeftOut(ports, 0);
        if (chunk === null || chunk.events === 0) return;
      }
    },
    queued: async (id) => {
      const rows = await sql<{ event_id: string }[]>`
        select event_id from webhook_delivery where webhook_id = ${id} and event_type <> 'webhook_paused' order by next_attempt_at, created_at, id`;
      const made = await scopes();
      const byWebhookId = new Map(
        knownIds.flatMap((eventId) => made.map((scope) => [fleetEventWebhookId(scope, eventId), eventId])),
      );
      return rows.map(({ event_id }) => byWebhookId.get(event_id) ?? -1);
    },
  };
}

describe('what was left out while an endpoint was paused', () => {
  test('is made from the events once it is resumed, each once, in their order, and nothing else', async (t) => {
    const setup = await startSetup(t);
    const id = await setup.endpoint({ events: ['rfid', 'geofence_exit'] satisfies Subscription[] });
    await setup.pause(id);
    const first = await setup.events(CHUNK + 1);
    const area = (direction: 'entry' | 'exit') => ({ type: 'geofence' as const, area: { id: 7, direction } });
    const [exit] = await setup.events(1, area('exit'));
    await setup.events(1, area('entry'));
    await setup.events(1, { type: 'alarm' });
    await setup.events(1, { worldId: await otherWorld(setup) });
    await setup.makeAll();
    assert.deepEqual(await setup.queued(id), [], 'it is still paused');
    const { events, is_complete, hours } = await countLeftOut(setup.sql, setup.accountId, id);
    assert.deepEqual([events, is_complete], [CHUNK + 2, true]);
    assert.equal(
      hours.reduce((sum, hour) => sum + hour.events, 0),
      events,
    );
    await setup.resume(id);
    await setup.makeAll();
    assert.deepEqual(await setup.queued(id), [...first, exit]);
    assert.deepEqual([...(await setup.sql`select from webhook_left_out`)], [], 'it is over');
    assert.equal((await countLeftOut(setup.sql, setup.accountId, id)).events, 0);
  });

  test('is nothing from before the endpoint was made', async (t) => {
    const { sql, accountId, worldId, ...setup } = await startSetup(t);
    const [before = 0] = await setup.events(1);
    await sql`update fleet_event set recorded_at = clock_timestamp() where id = ${before}`;
    const id = await setup.endpoint();
    const [after = 0] = await setup.events(1);
    await pauseWebhooks(sql, { accountId, worldId }, [{ webhookId: id, reason: 'endpoint_quota' }]);
    assert.equal((await countLeftOut(sql, accountId, id)).events, 0);
    await sql`update fleet_event set recorded_at = clock_timestamp() where id = ${after}`;
    assert.equal((await countLeftOut(sql, accountId, id)).events, 1);
  });

  test('passes over an event that has a delivery, and ends where the pause ended', async (t) => {
    const setup = await startSetup(t);
    const id = await setup.endpoint();
    await setup.pause(id);
    const events = await setup.events(3);
    await setup.resume(id);
    const draft = await draftOf(setup, id, events[1] ?? 0);
    await setup.sql.begin((tx) => insertDeliveries(tx, [draft], 'new_events'));
    const later = await setup.events(1);
    await setup.sql`update fleet_event set recorded_at = clock_timestamp() where id = ${later[0] ?? 0}`;
    await setup.makeAll();
    assert.deepEqual((await setup.queued(id)).sort(), events.toSorted());
  });

  test('passes over it also when ids are made from something else since then, as after a failover', async (t) => {
    const setup = await startSetup(t);
    const id = await setup.endpoint();
    await setup.pause(id);
    const events = await setup.events(2);
    const draft = await draftOf(setup, id, events[0] ?? 0);
    await setup.resume(id);
    await setup.sql.begin((tx) => insertDeliveries(tx, [draft], 'new_events'));
    await meetLossyServer(setup.sql);
    assert.notEqual(fleetEventWebhookId(await setup.scope(), events[0] ?? 0), draft.eventId);
    await setup.makeAll();
    assert.deepEqual((await setup.queued(id)).sort(), events, 'each once');
  });

  test('is made from the time on that its owner names', async (t) => {
    const setup = await startSetup(t);
    const [id, none] = [await setup.endpoint(), await setup.endpoint()];
    await setup.pause(id);
    await setup.pause(none);
    const [early = 0] = await setup.events(1);
    const late = await setup.events(2);
    await setup.sql`update fleet_event set recorded_at = recorded_at - interval '10 minutes' where id = ${early}`;
    await setup.resume(id, Date.now() - 35 * 60_000);
    await setup.resume(none, Date.now());
    await setup.makeAll();
    assert.deepEqual(await setup.queued(id), late);
    assert.deepEqual(await setup.queued(none), []);
  });

  test('stops at a second pause and goes on where it was', async (t) => {
    const setup = await startSetup(t);
    const id = await setup.endpoint();
    await setup.pause(id);
    const events = await setup.events(CHUNK + 10);
    await setup.resume(id);
    assert.equal((await makeLeftOut(setup.ports, 0))?.made, CHUNK);
    await pauseWebhooks(setup.sql, setup, [{ webhookId: id, reason: 'failing' }]);
    await setup.makeAll();
    assert.equal((await setup.queued(id)).length, CHUNK);
    await setup.resume(id);
    await setup.makeAll();
    assert.deepEqual(await setup.queued(id), events);
  });

  test('waits while the outbox has events of that time, and while thousands of deliveries wait', async (t) => {
    const setup = await startSetup(t);
    const id = await setup.endpoint();
    await setup.pause(id);
    const events = await setup.events(1);
    await setup.resume(id);
    await setup.sql`
      with batch as (
        insert into webhook_outbox_batch (event_ids, event_types, bodies) values ('{x}', '{rfid}', '{b}') returning id)
      insert into webhook_outbox (account_id, batch_id, places, webhook_ids, size, created_at)
      select ${setup.accountId}, id, '{1}', array[${id}::bigint], 1, clock_timestamp() - interval '1 hour' from batch`;
    await setup.makeAll();
    assert.deepEqual(await setup.queued(id), []);
    await setup.sql`delete from webhook_outbox`;
    const [row] = await setup.queue(id);
    await setup.sql`
      insert into webhook_delivery (id, webhook_id, account_id, event_id, event_type, body)
      select 'dlv_' || n, ${id}, ${setup.accountId}, 'evt_' || n, 'rfid', '{}' from generate_series(1, 5000) n`;
    await setup.makeAll();
    assert.equal((await setup.queued(id)).includes(events[0] ?? 0), false);
    await setup.sql`delete from webhook_delivery where id <> ${row ?? ''}`;
    await setup.makeAll();
    assert.ok((await setup.queued(id)).includes(events[0] ?? 0));
  });
});

/** A delivery of this event to this endpoint. */
async function draftOf({ scope }: Setup, webhookId: number, event: number): Promise<NewDelivery> {
  return { webhookId, eventId: fleetEventWebhookId(await scope(), event), eventType: 'rfid', body: '{}' };
}

async function otherWorld({ sql, account }: Pick<DeliveryDatabase, 'sql' | 'account'>): Promise<number> {
  const id = await account('b@x');
  const [row] = await sql<{ world_id: number }[]>`select world_id from account where id = ${id}`;
  return row?.world_id ?? 0;
}
