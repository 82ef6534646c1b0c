import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { INGEST_TOKEN, type Pod, request, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';
import {
  EventSource,
  endpointBody,
  type MadeWebhook,
  type WebhookApi,
  webhookApi,
  webhookEnv,
} from '../support/webhooks/webhooks.ts';

const ALL = ['anna', 'bruno', 'carla'] as const;
type Name = (typeof ALL)[number];
const emailOf = (name: Name): string => `${name}@example.com`;

/** Anna and Bruno belong to one organization, Carla to none. One pod takes points, one manages, nobody sends at first. */
describe('who receives an event', () => {
  let url: string;
  let sql: Sql;
  let admin: Admin;
  let ingest: Pod;
  let manager: Pod;
  const keys = new Map<Name, string>();
  const apis = new Map<Name, WebhookApi>();
  const everything = new Map<Name, MadeWebhook>();
  let devices = 0;

  before(async () => {
    ({ url } = await createDatabase());
    admin = adminOf(url);
    ingest = await startPod(url, { env: webhookEnv(1, { ROLES: 'ingest' }) });
    manager = await startPod(url, { env: webhookEnv(1, { ROLES: 'api' }) });
    sql = openSql(url, { maxConnections: 2, name: 'test' });
    for (const name of ALL) {
      await admin.account(emailOf(name), name === 'carla' ? {} : { organization: 'Acme' });
      keys.set(name, (await admin.key(emailOf(name))).key);
      apis.set(name, webhookApi(manager.api, keys.get(name) ?? ''));
      const api = apis.get(name) as WebhookApi;
      everything.set(name, await api.make(endpointBody(`https://127.0.0.1:1/${name}`)));
    }
  });
  after(async () => {
    await Promise.all([ingest.stop(), manager.stop()]);
    await sql.end();
  });

  const newDevice = async (owner: Name, ...options: string[]): Promise<EventSource> => {
    const imei = String(350000000000001 + devices++);
    await admin.device(emailOf(owner), imei, ...options);
    return new EventSource(imei, Date.now() - 86_400_000);
  };
  /** Types queued for each account's endpoint for everything, by events of one device. */
  const receivedOf = async (imei: string): Promise<Record<string, string[]>> => {
    const found: Record<string, string[]> = {};
    for (const name of ALL) {
      const rows = await sql<{ event_type: string }[]>`
        select event_type from webhook_delivery where webhook_id = ${everything.get(name)?.id ?? 0}
          and body::jsonb->'data'->'device'->>'imei' = ${imei} order by (body::jsonb->'data'->>'fleet_event_id')::bigint`;
      if (rows.length > 0) found[name] = rows.map((row) => row.event_type);
    }
    return found;
  };

  test('a private device: its account alone; a shared one: every member', async () => {
    const own = await newDevice('anna');
    const shared = await newDevice('anna', '--organization');
    const stranger = await newDevice('carla');
    for (const source of [own, shared, stranger]) await source.emit(ingest);
    assert.deepEqual(await receivedOf(own.imei), { anna: ['rfid'] });
    assert.deepEqual(await receivedOf(shared.imei), { anna: ['rfid'], bruno: ['rfid'] });
    assert.deepEqual(await receivedOf(stranger.imei), { carla: ['rfid'] });
    const copies = await sql<{ event_id: string; body: string }[]>`
      select event_id, body from webhook_delivery where body::jsonb->'data'->'device'->>'imei' = ${shared.imei}`;
    assert.equal(copies.length, 2);
    assert.deepEqual(copies[0], copies[1], 'the same event, byte for byte');
    assert.equal(JSON.parse(copies[0]?.body ?? '').id, copies[0]?.event_id);
  });

  test('by subscription: its types or everything; nothing while inactive; from the moment that it is acknowledged', async () => {
    const api = apis.get('carla') as WebhookApi;
    const source = await newDevice('carla');
    const subscriptions: Record<string, string[]> = {
      rfid: ['rfid'],
      alarms: ['alarm', 'tamper_alert'],
      ping: ['ping'],
      both: ['ignition_on', 'rfid'],
    };
    const made = new Map<string, number>();
    for (const [name, events] of Object.entries(subscriptions)) {
      made.set(name, (await api.make({ url: `https://127.0.0.1:1/${name}`, events })).id);
    }
    const typesOf = async (name: string) =>
      (await api.deliveries(made.get(name) ?? 0)).map(({ event_type }) => event_type).sort();
    const send = (others: object) => ingest.points([{ ...source.point(), ...others }]);
    await send({ ignition: false });
    await send({ ignition: true, alarm: 'sos,tamper' });
    assert.deepEqual(await typesOf('rfid'), ['rfid', 'rfid']);
    assert.deepEqual(await typesOf('alarms'), ['alarm', 'tamper_alert']);
    assert.deepEqual(await typesOf('ping'), []);
    assert.deepEqual(await typesOf('both'), ['ignition_on', 'rfid', 'rfid']);
    const rfid = made.get('rfid') ?? 0;
    for (const [active, count] of [
      [false, 2],
      [true, 3],
    ] as const) {
      await api.change(rfid, { active });
      await send({});
      assert.equal((await api.deliveries(rfid)).length, count);
    }
    await api.change(rfid, { events: ['alarm'] });
    await send({});
    assert.equal((await api.deliveries(rfid)).length, 3);
    await api.call('DELETE', `/${rfid}`);
    await send({});
    assert.equal((await sql`select from webhook_delivery where webhook_id = ${rfid}`).length, 0);
  });

  test('a pod without the role ingest knows no /positions; one without the role api opens no public listener', async () => {
    for (const path of ['/positions', '/traccar', '/osmand']) {
      const headers = { 'X-Ingest-Token': INGEST_TOKEN };
      const reply = await request(`${manager.ingest}${path}`, { method: 'POST', headers, body: '[]' });
      assert.deepEqual([reply.status, reply.body.error.code], [404, 'NOT_FOUND'], path);
    }
    for (const path of ['/healthz', '/readyz', '/metrics'])
      assert.equal((await request(`${manager.ingest}${path}`)).status, 200);
    assert.equal(ingest.api, 'http://127.0.0.1:null');
  });

  test('a pod that only delivers sends what the others queued', async (t) => {
    const receiver = await startReceiver(t);
    const api = apis.get('carla') as WebhookApi;
    const { id } = await api.make(endpointBody(`${receiver.url}/roles`));
    const source = await newDevice('carla');
    await source.emit(ingest, 3);
    await sql`delete from webhook_delivery where webhook_id <> ${id}`;
    const deliverer = await startPod(url, { t, env: webhookEnv(1, { ROLES: 'delivery' }) });
    await assert.rejects(request(`${deliverer.api}/api/webhooks`));
    const rejected = await request(`${deliverer.ingest}/positions`, { method: 'POST', body: '[]' });
    assert.notEqual(rejected.status, 200);
    await api.deliveriesWhen(id, 3, ({ status }) => status === 'delivered');
    const order = receiver.to('/roles').map(({ body }) => JSON.parse(body).data.rfid);
    assert.equal(new Set(order).size, 3);
  });
});
