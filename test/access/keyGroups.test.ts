import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatIso, HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts';
import { StreamClient } from '../support/feeds/feedReader.ts';
import { callApi, faceOf, logIn, makeOwner, setPassword } from '../support/http/application.ts';
import { CIRCLE } from '../support/http/areas.ts';
import { describedRoutes } from '../support/http/describedApi.ts';
import { manualClock } from '../support/manualClock.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { NO_LIMITS, type Pod, type Reply, startPod } from '../support/pod.ts';
import { countLockWaiters, holdTransaction } from '../support/postgres/holdTransaction.ts';
import { waitFor } from '../support/waitFor.ts';

const [SEEN, ALSO, UNSEEN, MISSING] = [
  '350000000000001',
  '350000000000002',
  '350000000000003',
  '350000000000009',
];
const clock = manualClock(Date.now());
const fromMs = clock() - HOUR_MS;
const WINDOW = `from=${formatIso(fromMs)}&to=${formatIso(clock())}`;
const HERE = 'lat=41.9&lng=12.5';
const GROUPS = ['north', 'cold, wet'];
const OTHER = 'other@example.com';

let limited = '';
let area = 0;
const owner = ownerPod(
  {
    clock,
    env: { ...NO_LIMITS, ROLES: 'api,ingest' },
    devices: [
      { imei: SEEN, name: 'Van', groups: ['north', 'x'] },
      { imei: ALSO, groups: ['cold, wet'] },
    ],
  },
  async ({ pod, admin, key }) => {
    await setPassword(admin, OWNER);
    const token = await logIn(pod, OWNER);
    const body = { name: 'Depot', scopes: await allScopes(pod, token), groups: GROUPS };
    const made = await callApi(pod, 'POST', '/v1/keys', { token, body });
    assert.deepEqual([made.status, made.body.data.groups], [201, GROUPS], made.text);
    limited = made.body.data.key;
    const created = await callApi(pod, 'POST', '/v3/areas', { key, body: CIRCLE });
    area = created.body.data.id;
    await admin.run('command:enqueue', '--imei', SEEN, '--type', 'reboot');
    await drive(pod, SEEN, 41.9);
    await drive(pod, ALSO, 41.901);
  },
);
const { pod } = owner;

async function allScopes(on: Pod, token: string): Promise<string[]> {
  const { body } = await callApi(on, 'GET', '/v1/keys', { token });
  return body.data[0].scopes;
}

/** Comes into the area. */
async function drive(on: Pod, imei: string, latitude: number, afterMinutes = 0): Promise<void> {
  const at = [11, 12.5, 12.5001].map((longitude, n) => ({
    ...{ imei, latitude, longitude, ignition: n > 0 },
    recorded_at: fromMs + (afterMinutes + n) * MINUTE_MS,
  }));
  await on.points(at);
}

/** Of every route that answers what it reads: the calls by which a caller could learn of a device. */
const READS: Readonly<Record<string, readonly (string | readonly [query: string, body: object])[]>> = {
  'GET /areas': [''],
  'POST /areas/backtest': [['', { area_id: 0, from: formatIso(fromMs), to: formatIso(clock()) }]],
  'GET /areas/containing': [`?${HERE}`],
  'POST /areas/containing/batch': [['', { points: [{ lat: 41.9, lng: 12.5 }] }]],
  'GET /areas/:id': [''],
  'GET /areas/:id/contains': [`?${HERE}`],
  'GET /areas/:id/devices': ['', '?state=inside', '?limit=1&offset=1'],
  'GET /areas/:id/events': ['', `?device=${UNSEEN}`, '?event=entry'],
  'GET /areas/:id/explain': [`?device=${SEEN}&${WINDOW}`],
  'GET /areas/:id/overlaps': [''],
  'GET /devices': ['', '?limit=1&offset=1', '?q=35', '?group=north,south', '?status=unknown,parked'],
  'GET /devices/changes': ['', '?group=south', '?limit=1'],
  'GET /devices/count': ['', '?bbox=-180,-90,180,90', '?group=south', '?area_id=0'],
  'GET /devices/nearest': [`?${HERE}&limit=50`, `?${HERE}&group=south`, `?${HERE}&limit=1`],
  'POST /devices/nearest/batch': [
    ['', { points: [{ lat: 41.9, lng: 12.5, limit: 9 }] }],
    ['', { points: [{ lat: 41.9, lng: 12.5 }], filter: { group: ['south'] } }],
  ],
  'GET /devices/within': [
    '?bbox=-180,-90,180,90',
    '?area_id=0',
    '?bbox=-180,-90,180,90&limit=1&group=south,north',
  ],
  'POST /devices/within': [
    ['', { area: CIRCLE }],
    ['', { area: CIRCLE, group: 'south' }],
  ],
  'GET /devices/:imei': [''],
  'GET /devices/:imei/commands': [''],
  'GET /devices/:imei/history': [''],
  'GET /devices/:imei/history/export': [`?${WINDOW}&format=csv`],
  'GET /devices/:imei/history/summary': [`?${WINDOW}`],
  'GET /devices/:imei/location': [''],
  'GET /events': ['', '?limit=1', `?device=${UNSEEN}`, '?type=geofence', '?offset=2&limit=1'],
  'GET /events/feed': [`?from=${formatIso(fromMs)}`, `?from=${formatIso(fromMs)}&device=${UNSEEN}`],
  'GET /history/export': [
    `?${WINDOW}&format=ndjson`,
    `?${WINDOW}&format=csv&devices=${SEEN},${UNSEEN}`,
    `?format=ndjson&cursor=`,
  ],
  'GET /history/summary': [`?${WINDOW}`, `?${WINDOW}&format=csv&by=day&group=south,x`],
  'GET /presence': [`?${WINDOW}&${HERE}&radius_m=5000`, `?${WINDOW}&area_id=0`],
  'GET /tiles/areas/:z/:x/:y.mvt': [''],
  'GET /tiles/devices/:z/:x/:y.mvt': ['', '?group=south'],
};
/** Writes of areas have nothing of devices. */
const WRITES = [
  'POST /areas',
  'PUT /areas/by-external-id/*externalId',
  'POST /areas/import',
  'PATCH /areas/:id',
  'DELETE /areas/:id',
];
const STREAM = 'GET /stream';
const REFUSED = /sees only devices of its groups, and the answer cannot be limited to them/;

const routes = describedRoutes().filter((route) =>
  route.versions.some((version) => version !== 'v1' && version !== 'share'),
);
const pathOf = (path: string, imei: string): string =>
  path
    .replace(':imei', imei)
    .replace(':id', String(area))
    .replace('*externalId', 'none')
    .replace(':z/:x/:y', '0/0/0')
    .replace(':deliveryId', `dlv_${'0'.repeat(32)}`);

function ask(
  route: string,
  call: string | readonly [string, object],
  key: string,
  imei = SEEN,
  version = 'v3',
): Promise<Reply> {
  const [method = '', path = ''] = route.split(' ');
  const [query, body] = typeof call === 'string' ? [call, undefined] : call;
  const named = query.replace('area_id=0', `area_id=${area}`);
  const sent = body && ('area_id' in body ? { ...body, area_id: area } : body);
  return callApi(pod, method, `/${version}${pathOf(path, imei)}${named}`, {
    key,
    ...(sent && { body: sent }),
  });
}

/** Two answers differ in their cursors always. */
function shownBy(reply: Reply) {
  const text = reply.text.replaceAll(/"cursor":"[^"]*"/g, '"cursor":""');
  const headers = [...reply.headers].filter(
    ([name]) => !['date', 'content-length', 'x-next-cursor'].includes(name),
  );
  return { status: reply.status, text, headers };
}

async function readAll(): Promise<Map<string, unknown>> {
  const shown = new Map<string, unknown>();
  for (const [route, calls] of Object.entries(READS)) {
    for (const call of calls) {
      const reply = await ask(route, call, limited);
      assert.ok(reply.status === 200 || reply.status === 204, `${route} ${call}: ${reply.text}`);
      shown.set(`${route} ${JSON.stringify(call)}`, shownBy(reply));
    }
  }
  return shown;
}

describe('a key with groups', () => {
  test('answers on every route as if there were no devices but those of its groups', async () => {
    const before = await readAll();
    const [client, open] = [
      await StreamClient.open(pod, limited),
      await StreamClient.open(pod, owner.key, 'bbox=-180,-90,180,90'),
    ];
    await owner.admin.importDevices(OWNER, [
      { imei: UNSEEN, name: 'Hidden', plate: 'HI 1', groups: ['south'] },
    ]);
    await owner.admin.run('command:enqueue', '--imei', UNSEEN, '--type', 'reboot');
    await drive(pod, UNSEEN, 41.9);
    // Those who see it see it.
    const { body } = await ask('GET /areas/:id/devices', '', owner.key);
    assert.equal(body.meta.total, 3);

    const after = await readAll();
    for (const [name, shown] of before) assert.deepEqual(after.get(name), shown, name);
    const ofUnseen = (stream: StreamClient, event: string) =>
      stream.of(event).filter(({ data }) => JSON.stringify(data).includes(UNSEEN));
    await waitFor(() => ofUnseen(open, 'fleet_event').length > 1 && ofUnseen(open, 'device').length > 0);
    await drive(pod, ALSO, 41.9005, 5);
    await waitFor(() => client.of('fleet_event').length > 0);
    assert.deepEqual([ofUnseen(client, 'device'), ofUnseen(client, 'fleet_event')], [[], []]);
    for (const stream of [client, open]) stream.close();
  });

  test('lists no key but itself', async () => {
    const all = (await callApi(pod, 'GET', '/v1/keys', { key: owner.key })).body.data;
    const own = (await callApi(pod, 'GET', '/v1/keys', { key: limited })).body.data;
    assert.ok(all.length > 1);
    assert.deepEqual(
      own.map(({ groups }: { groups: string[] }) => groups),
      [GROUPS],
    );
    assert.deepEqual((await callApi(pod, 'GET', '/v1/keys?offset=1', { key: limited })).body.data, []);
  });

  test('has nothing of other devices on any route that it may call, and is told that it may not call the others', async () => {
    for (const { method, path, versions, ...route } of routes) {
      const name = `${method} ${path}`;
      const isWebhook = versions.includes('webhooks');
      const prefix = isWebhook ? 'webhooks' : 'v3';
      const isCovered = !isWebhook && (name in READS || name === STREAM || WRITES.includes(name));
      assert.equal(
        isCovered,
        route.isOpenToGroups === true,
        `${name} is in the lists of this test when it is open`,
      );
      if (isCovered) continue;
      for (const version of isWebhook ? [prefix] : [...versions, 'v1']) {
        const place = isWebhook ? 'webhooks' : version;
        const rest = path === '/' ? '' : pathOf(path, SEEN);
        const reply = await callApi(pod, method, `/${place}${rest}`, {
          key: limited,
          ...(method !== 'GET' && { body: {} }),
        });
        assert.equal(reply.status, 403, `${name}: ${reply.text}`);
        if (!(version === 'v1' && method !== 'GET')) assert.match(reply.text, REFUSED);
      }
    }
  });

  test('is answered the same for a device of other groups as for one that does not exist', async () => {
    const other = (reply: Reply, imei: string) =>
      JSON.parse(JSON.stringify(faceOf(reply)).replaceAll(imei, MISSING));
    for (const [route, calls] of Object.entries(READS)) {
      for (const call of calls) {
        const isNamed = route.includes(':imei') || JSON.stringify(call).includes('device');
        if (!isNamed) continue;
        const of = (imei: string) =>
          ask(
            route,
            JSON.parse(JSON.stringify(call).replaceAll(new RegExp(`${SEEN}|${UNSEEN}`, 'g'), imei)),
            limited,
            imei,
          );
        const [unseen, missing] = [await of(UNSEEN), await of(MISSING)];
        if (route.includes(':imei')) assert.equal(missing.status, 404, route);
        if (!missing.text.includes('cursor'))
          assert.deepEqual(other(unseen, UNSEEN), other(missing, MISSING), `${route} ${call}`);
      }
    }
  });

  test('sees a device no more on any pod once it leaves the groups, and its stream says that it is removed', async (t) => {
    const second = await startPod(owner.url, { t, clock, env: NO_LIMITS });
    const clients = [];
    for (const on of [pod, second]) {
      const client = await StreamClient.open(on, limited, '');
      t.after(() => client.close());
      clients.push(client);
    }
    for (const client of clients) await waitFor(() => client.of('device').length === 2);
    const { body: page } = await ask('GET /devices/changes', '', limited);
    const at = `?cursor=${page.meta.cursor}`;
    await owner.admin.importDevices(OWNER, [
      { imei: ALSO, groups: ['south'] },
      { imei: UNSEEN, name: 'Hidden again' },
    ]);
    for (const on of [pod, second]) {
      const { status } = await on.get(`/api/v3/devices/${ALSO}`, limited);
      assert.equal(status, 404);
      const { text } = await on.get('/api/v3/events', limited);
      assert.deepEqual([text.includes(SEEN), text.includes(ALSO)], [true, false]);
    }
    for (const client of clients) {
      await waitFor(() => client.of('device').length === 3);
      assert.deepEqual(client.of('device').at(-1)?.data, { id: ALSO, imei: ALSO, removed: true });
    }
    // Pages do not know what was seen before: the reader begins anew.
    const late = await ask('GET /devices/changes', at, limited);
    assert.deepEqual([late.status, late.body.error?.code], [410, 'CURSOR_EXPIRED']);
  });

  test('lists events on two connections of its account, however often it asks, and another account lists its own', async (t) => {
    await makeOwner(owner.admin, OTHER);
    const { key: other } = await owner.admin.key(OTHER);
    // Only a caller with groups looks at devices for its events.
    const unlock = await holdTransaction(owner.sql, (tx) => tx`lock table device in access exclusive mode`);
    t.after(unlock);
    const paths = ['/api/v3/events', `/api/v3/areas/${area}/events`];
    const asked = Array.from({ length: 40 }, (_, n) => pod.get(paths[n % 2] as string, limited));
    await waitFor(async () => (await countLockWaiters(owner.sql)) >= 2, 'no list waits for the table');
    for (let n = 0; n < 10; n++) {
      assert.equal((await pod.get('/api/v3/events', other)).status, 200);
      assert.ok((await countLockWaiters(owner.sql)) <= 2);
    }
    await unlock();
    // Those that waited for longer than a statement may are refused for now.
    for (const { status } of await Promise.all(asked)) assert.ok([200, 503].includes(status), String(status));
  });
});
