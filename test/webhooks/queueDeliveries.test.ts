import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { type NewFleetEvent, type Queued, queueDeliveries } from '../../src/ingest/storeEvents.sql.ts';
import { Subscriptions, Tenancy } from '../../src/ingest/watchers.memory.ts';
import type { Tx } from '../../src/postgres/sql.ts';
import { isUniqueViolation } from '../../src/postgres/sqlErrors.ts';
import { selectDeliveries } from '../../src/webhooks/deliveries.sql.ts';
import { fanOut } from '../../src/webhooks/delivery/outbox.sql.ts';
import { fleetEventWebhookId, type Subscription } from '../../src/webhooks/delivery.ts';
import { type DeliveryDatabase, startDeliveryDatabase } from '../support/webhooks/deliveryDatabase.ts';

const INSTANCE_ID = '00000000-0000-4000-8000-000000000001';
const NOW_MS = Date.UTC(2026, 4, 1, 12);
const AT_ONCE = 100;
const IMEI = '350000000000001';
const [ORGANIZATION, MEMBER, OTHER_MEMBER, STRANGER] = [100, 1, 2, 3];

interface Setup {
  readonly database: DeliveryDatabase;
  readonly memory: Parameters<typeof queueDeliveries>[1]['memory'];
  /** An endpoint that memory has in this world. Which account has it in Postgres is not asked here. */
  endpoint(worldId: number, events: readonly Subscription[], active?: boolean): Promise<number>;
  /** Queues these events in a transaction, as those with ids from 1 on. */
  queue(events: readonly NewFleetEvent[], firstId?: number, atOnce?: number): Promise<Queued>;
  queueIn(tx: Tx, events: readonly NewFleetEvent[], firstId?: number, atOnce?: number): Promise<Queued>;
}

async function startSetup(t: TestContext): Promise<Setup> {
  const database = await startDeliveryDatabase(t);
  const tenancy = new Tenancy();
  tenancy.putAccount(11, MEMBER, ORGANIZATION);
  tenancy.putAccount(12, OTHER_MEMBER, ORGANIZATION);
  tenancy.putAccount(13, STRANGER, null);
  const subscriptions = new Subscriptions();
  const memory = { fleet: new Fleet(), areas: new AreaCatalog(), tenancy, subscriptions };
  const ports = { memory, server: { eventScope: INSTANCE_ID }, traces: null };
  const queueIn: Setup['queueIn'] = (tx, events, firstId = 1, atOnce = AT_ONCE) => {
    const ids = events.map((_, n) => firstId + n);
    return queueDeliveries(tx, ports, events, ids, NOW_MS, atOnce);
  };
  return {
    database,
    memory,
    queueIn,
    endpoint: async (worldId, events, active = true) => {
      const id = await database.endpoint({ events, active });
      subscriptions.put({ id, worldId, events });
      return id;
    },
    queue: (events, ...more) => database.sql.begin((tx) => queueIn(tx, events, ...more)),
  };
}

function event(worldId: number, others: Partial<NewFleetEvent> = {}): NewFleetEvent {
  return {
    worldId,
    deviceId: 1,
    imei: IMEI,
    type: 'rfid',
    message: 'a card',
    data: { rfid: 'card' },
    occurredAtMs: NOW_MS - 5_000,
    ...others,
  };
}
const crossing = (worldId: number, direction: 'entry' | 'exit') =>
  event(worldId, { type: 'geofence', data: { areaId: 7, event: direction }, area: { id: 7, direction } });

const queuedFor = async ({ database }: Setup): Promise<Record<number, string[]>> => {
  const rows = await database.sql<{ webhook_id: number; event_type: string }[]>`
    select webhook_id, event_type from webhook_delivery order by id`;
  const found: Record<number, string[]> = {};
  for (const row of rows) found[row.webhook_id] = [...(found[row.webhook_id] ?? []), row.event_type];
  return found;
};

describe('the outbox of a transaction', () => {
  test('the same id and bytes for every endpoint: what the event says, its device, its times', async (t) => {
    const setup = await startSetup(t);
    setup.memory.fleet.putDevice({
      id: 1,
      imei: IMEI,
      worldId: ORGANIZATION,
      name: 'Van',
      plate: null,
      model: null,
      groups: [],
      editedAtMs: 0,
    });
    await setup.endpoint(MEMBER, ['*']);
    await setup.endpoint(OTHER_MEMBER, ['*']);
    await setup.queue([event(ORGANIZATION), event(ORGANIZATION, { imei: '350000000000002' })], 41);
    const rows = await setup.database.sql<{ event_id: string; body: string }[]>`
      select event_id, body from webhook_delivery order by id`;
    const expected = [
      [IMEI, 'Van', 41],
      ['350000000000002', null, 42],
    ].flatMap(([imei, name, fleetEventId]) => {
      const id = fleetEventWebhookId(INSTANCE_ID, Number(fleetEventId));
      const data = {
        rfid: 'card',
        fleet_event_id: fleetEventId,
        device: { imei, name, plate: null },
        occurred_at: '2026-05-01T11:59:55.000Z',
      };
      const body = JSON.stringify({ id, type: 'rfid', created_at: '2026-05-01T12:00:00.000Z', data });
      return [
        { event_id: id, body },
        { event_id: id, body },
      ];
    });
    assert.deepEqual([...rows], expected);
  });

  test('Postgres has the last word: endpoints gone, inactive, paused, or of a deactivated account get nothing', async (t) => {
    const setup = await startSetup(t);
    const inactive = await setup.endpoint(MEMBER, ['*'], false);
    const paused = await setup.endpoint(MEMBER, ['*']);
    await setup.database.sql`
      update webhook set paused_at = now(), paused_reason = 'failing' where id = ${paused}`;
    const gone = await setup.endpoint(MEMBER, ['*']);
    await setup.database.sql`delete from webhook where id = ${gone}`;
    const there = await setup.endpoint(MEMBER, ['*']);
    assert.deepEqual([...(await setup.queue([event(MEMBER)])).made.keys()], [there]);
    assert.deepEqual(await queuedFor(setup), { [there]: ['rfid'] });
    await setup.database.sql`update account set active = false`;
    assert.deepEqual(await setup.queue([event(MEMBER)], 2), {
      made: new Map(),
      isOutboxFilled: false,
    });
    await setup.database.sql`update account set active = true`;
    await setup.database.sql`update webhook set active = true where id = ${inactive}`;
    assert.deepEqual(
      [...(await setup.queue([event(MEMBER)], 3)).made.keys()].sort(),
      [inactive, there].sort(),
    );
  });

  test('nothing of it stays when the transaction ends otherwise', async (t) => {
    const setup = await startSetup(t);
    await setup.endpoint(MEMBER, ['*']);
    const doomed = setup.database.sql.begin(async (tx) => {
      assert.equal((await setup.queueIn(tx, [event(MEMBER)])).made.size, 1);
      throw new Error('planted');
    });
    await assert.rejects(doomed, /planted/);
    assert.deepEqual(await queuedFor(setup), {});
  });

  test('the same event cannot be queued twice for an endpoint in its transaction, however late in it', async (t) => {
    const setup = await startSetup(t);
    await setup.endpoint(MEMBER, ['*']);
    const twice = setup.database.sql.begin(async (tx) => {
      for (const seconds of [0, 0.01]) {
        await tx`select pg_sleep(${seconds})`;
        await setup.queueIn(tx, [event(MEMBER)]);
      }
    });
    await assert.rejects(twice, (error) => isTakenInPartition(error));
    assert.deepEqual(await queuedFor(setup), {});
  });

  test('lists show the deliveries of one transaction newest first, and the endpoint gets them in the order of the events', async (t) => {
    const setup = await startSetup(t);
    const id = await setup.endpoint(MEMBER, ['*']);
    const types = ['alarm', 'rfid', 'tamper_alert', 'parking_start', 'ignition_on'] as const;
    await setup.queue(types.map((type) => event(MEMBER, { type })));
    const page = { fromMs: null, toMs: null, limit: 50, offset: 0 };
    const listed = await selectDeliveries(setup.database.sql, id, null, page);
    assert.deepEqual(
      listed.map((delivery) => delivery.event_type),
      types.toReversed(),
    );
    const due = await setup.database.sql<{ event_type: string }[]>`
      select event_type from webhook_delivery order by next_attempt_at, created_at, id`;
    assert.deepEqual(
      due.map((row) => row.event_type),
      types,
    );
  });
});

describe('more deliveries than a transaction makes itself', () => {
  /** What waits in the outbox, by account and in its order: places, endpoints. */
  const waiting = async ({ database }: Setup) => {
    const rows = await database.sql<{ account_id: number; places: number[]; webhook_ids: string[] }[]>`
      select account_id, places, webhook_ids from webhook_outbox order by id`;
    return rows.map((row) => [row.account_id, row.places, row.webhook_ids.map(Number)]);
  };

  test('wait in the outbox, with the receivers of the moment in which they happened', async (t) => {
    const setup = await startSetup(t);
    const { accountId } = setup.database;
    const [all, also] = [await setup.endpoint(MEMBER, ['*']), await setup.endpoint(MEMBER, ['*'])];
    const entries = await setup.endpoint(MEMBER, ['geofence_enter']);
    await setup.endpoint(MEMBER, ['*'], false);
    const events = [
      ...Array.from({ length: 3 }, () => crossing(MEMBER, 'exit')),
      event(MEMBER, { type: 'alarm' }),
      ...Array.from({ length: 2 }, () => crossing(MEMBER, 'entry')),
    ];
    assert.deepEqual(await setup.queue(events, 1, 10), { made: new Map(), isOutboxFilled: true });
    assert.deepEqual(await waiting(setup), [
      [accountId, [1, 2, 3, 4], [all, also]],
      [accountId, [5, 6], [all, also, entries]],
    ]);
    assert.deepEqual(await queuedFor(setup), {});
    await fanOut(setup.database.sql, 0);
    const exits = ['geofence_exit', 'geofence_exit', 'geofence_exit', 'alarm'];
    const enters = ['geofence_enter', 'geofence_enter'];
    assert.deepEqual(await queuedFor(setup), {
      [all]: [...exits, ...enters],
      [also]: [...exits, ...enters],
      [entries]: enters,
    });
  });

  test('are not overtaken by what comes after them, at the endpoints of their account; at others that is made at once', async (t) => {
    const setup = await startSetup(t);
    const { sql } = setup.database;
    const own = await setup.endpoint(MEMBER, ['*']);
    const others = await setup.endpoint(STRANGER, ['*']);
    const [stranger] = await sql<{ id: number }[]>`
      with world as (insert into world default values returning id)
      insert into account (email, name, world_id) select 'b@x', 'B', id from world returning id`;
    await sql`update webhook set account_id = ${stranger?.id ?? 0} where id = ${others}`;
    assert.equal((await setup.queue([event(MEMBER), event(MEMBER)], 1, 1)).isOutboxFilled, true);
    const mixed = await setup.queue([event(MEMBER, { type: 'alarm' }), event(STRANGER)], 3);
    assert.deepEqual(mixed, { made: new Map([[others, 1]]), isOutboxFilled: true });
    assert.deepEqual(await queuedFor(setup), { [others]: ['rfid'] });
    await fanOut(sql, 0);
    const after = await setup.queue([event(MEMBER, { type: 'parking_end' })], 5);
    assert.deepEqual(after, { made: new Map([[own, 1]]), isOutboxFilled: false });
    const sent = await sql<{ event_type: string }[]>`
      select event_type from webhook_delivery where webhook_id = ${own} order by next_attempt_at`;
    assert.deepEqual(
      sent.map((row) => row.event_type),
      ['rfid', 'rfid', 'alarm', 'parking_end'],
    );
  });

  test('that nobody receives any more are forgotten at once', async (t) => {
    const setup = await startSetup(t);
    await setup.endpoint(MEMBER, ['*'], false);
    assert.equal((await setup.queue([event(MEMBER), event(MEMBER)], 1, 1)).isOutboxFilled, false);
    assert.equal((await setup.database.sql`select from webhook_outbox_batch`).length, 0);
  });
});

/** The index of a partition carries the partition's name. */
function isTakenInPartition(error: unknown): boolean {
  const { constraint = '' } = error as { constraint?: string };
  return constraint.endsWith('_webhook_id_event_id_created_at_idx') && isUniqueViolation(error, constraint);
}
