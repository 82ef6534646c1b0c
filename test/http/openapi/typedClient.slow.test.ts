import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { CLIENT_PROGRAMS } from '../../support/http/clientPrograms.ts';
import { compile, generateClients, STRICTER } from '../../support/http/typedClient.ts';
import { type Pod, startPod } from '../../support/pod.ts';
import { adminOf } from '../../support/postgres/admin.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { skipWithoutTools } from '../../tools/tools.ts';

const IMEIS = ['350000000000001', '350000000000002', '350000000000003'];

/** A program as an integrator would write it: all that it knows of the API are the generated types. */
const PROGRAM = `
import type { components, operations } from './types.ts';

type Json<Response> = Response extends { content: { 'application/json': infer Body } } ? Body : never;
type Responses<Id extends keyof operations> = operations[Id]['responses'];
type Answer<Id extends keyof operations> = Json<
  Responses<Id>[Extract<keyof Responses<Id>, 200 | 201 | 202>]
>;
type Query<Id extends keyof operations> = operations[Id]['parameters'] extends { query?: infer Sent }
  ? NonNullable<Sent>
  : never;
type Schemas = components['schemas'];

const { BASE, KEY } = (globalThis as unknown as { process: { env: Record<string, string> } }).process.env;

async function send<Body>(method: string, path: string, body?: object): Promise<Body> {
  const response = await fetch(BASE + path, {
    method,
    headers: { 'X-API-Key': KEY ?? '', 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const json: unknown = await response.json();
  if (response.ok) return json as Body;
  const { error } = json as Schemas['Error'];
  if (error.code === 'TOO_MANY_REQUESTS') throw new Error('slow down');
  throw new Error(\`\${error.code}: \${error.message}\`);
}

function get<Id extends keyof operations>(path: string, query: Query<Id>): Promise<Answer<Id>> {
  const words = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return send('GET', \`\${path}?\${new URLSearchParams(words)}\`);
}

const printed: string[] = [];

// Poll for the nearest vehicles.
const nearest = await get<'nearestDevices'>('/api/v3/devices/nearest', { lat: 41.9, lng: 12.5, limit: 2 });
for (const device of nearest.data) {
  const latitude: number | undefined = device.location?.latitude;
  const isMoving = device.status === 'moving';
  printed.push(\`\${device.imei} \${device.distance_km.toFixed(3)} \${latitude} \${isMoving}\`);
}
printed.push(String(nearest.meta.query.max_km));

// Page through all of them.
const limit = 2;
for (let offset = 0; ; offset += limit) {
  const page = await get<'listDevices'>('/api/v3/devices', { limit, offset });
  printed.push(page.data.map((device) => device.name ?? device.imei).join(' '));
  if (page.meta.pagination.count < limit) break;
}

// Make an area, and ask whether a point is inside.
const depot: Schemas['AreaInput'] = {
  type: 'circle',
  name: 'Depot',
  center: { lat: 41.9, lng: 12.5 },
  radius_m: 250,
};
const area = await send<Answer<'createArea'>>('POST', '/api/v3/areas', depot);
const point = { lat: 41.9, lng: 12.5 };
const contains = await get<'areaContains'>(\`/api/v3/areas/\${area.data.id}/contains\`, point);
printed.push(\`\${contains.data.inside} \${contains.data.distance_m}\`);
const renamed: Schemas['AreaChange'] = { ...area.data, name: 'North depot' };
const changed = await send<Answer<'patchArea'>>('PATCH', \`/api/v3/areas/\${area.data.id}\`, renamed);
printed.push(changed.data.name);

// Read events: the type says what data holds.
const events = await get<'listEvents'>('/api/v3/events', { type: 'rfid' });
for (const event of events.data) {
  if (event.type === 'rfid') printed.push(\`\${event.device_imei} read \${event.data.rfid}\`);
  else if (event.type === 'geofence') printed.push(\`\${event.data.areaId}\`);
}

// Have them sent.
const endpoint: Schemas['WebhookInput'] = {
  url: 'https://hooks.example.com/fleet',
  events: ['geofence_enter', 'alarm'],
};
const webhook = await send<Answer<'createWebhook'>>('POST', '/api/webhooks', endpoint);
printed.push(webhook.data.secret.slice(0, 6));
const read = await send<Answer<'getWebhook'>>('GET', \`/api/webhooks/\${webhook.data.id}\`);
printed.push(read.data.retry_policy);

export function receive(delivery: Schemas['DeliveryBody']): string {
  switch (delivery.type) {
    case 'geofence_enter':
      return \`\${delivery.data.device.imei} entered \${delivery.data.areaName}\`;
    case 'ping':
      return delivery.data.message;
    default:
      return delivery.type;
  }
}

console.log(JSON.stringify(printed));
`;

/** Mistakes: what is replaced by what, and what the compiler says of it. */
const MISTAKES: readonly (readonly [name: string, from: string, to: string, complaint: RegExp])[] = [
  ['a misspelt field', 'device.distance_km.toFixed', 'device.distanceKm.toFixed', /'distanceKm'/],
  [
    'a parameter of another type',
    'lat: 41.9, lng: 12.5, limit: 2',
    "lat: '41.9', lng: 12.5",
    /'string'.*'number'/,
  ],
  ['a missing parameter', '{ lat: 41.9, lng: 12.5, limit: 2 }', '{ lng: 12.5 }', /'lat' is missing/],
  ['an unknown parameter', '{ limit, offset }', '{ limit, page: offset }', /'page' does not exist/],
  ['an unknown filter', "{ type: 'rfid' }", "{ type: 'tag' }", /"tag"/],
  ['a null that is forgotten', 'device.location?.latitude', 'device.location.latitude', /possibly 'null'/],
  ['a state that there is not', "=== 'moving'", "=== 'driving'", /no overlap/],
  ['a code that there is not', "'TOO_MANY_REQUESTS'", "'RATE_LIMITED'", /no overlap/],
  ['a circle without its radius', '  radius_m: 250,\n', '', /not assignable/],
  ['a radius in a string', 'radius_m: 250', "radius_m: '250'", /'string'.*'number'/],
  ['a type of area that there is not', "type: 'circle'", "type: 'square'", /"square"/],
  ['data of another type of event', 'event.data.areaId', 'event.data.rfid', /'rfid' does not exist/],
  ['a subscription to nothing known', "'alarm']", "'alarms']", /"alarms"/],
  ['a secret where it is not shown', 'read.data.retry_policy', 'read.data.secret', /'secret' does not exist/],
  [
    'data of another delivery',
    'delivery.data.message',
    'delivery.data.areaName',
    /'areaName' does not exist/,
  ],
];

describe('clients generated from the description', { skip: skipWithoutTools() }, () => {
  let pod: Pod;
  let key: string;
  let folder: string;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    ({ key } = await admin.key('owner@example.com'));
    for (const imei of IMEIS) await admin.device('owner@example.com', imei);
    pod = await startPod(database.url);
    const point = { imei: IMEIS[0], recorded_at: Date.now(), latitude: 41.9, longitude: 12.5, rfid: '04A1' };
    await pod.points([{ ...point, speed_kmh: 50 }]);
    folder = await mkdtemp(join(tmpdir(), 'fleet-client-'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    const { text } = await pod.get('/api/v3/openapi.json');
    await generateClients(text, pod.api, folder);
    await writeFile(join(folder, 'client.ts'), PROGRAM);
  });

  /** What a program of the folder prints. */
  const run = async (file: string): Promise<unknown> => {
    const env = { BASE: pod.api, KEY: key };
    const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: folder, env });
    return JSON.parse(stdout);
  };

  after(async () => {
    await pod.stop();
    await rm(folder, { recursive: true });
  });

  test('import, list and an error: the clients of three generators compile strictly and get them', async (t) => {
    const files = CLIENT_PROGRAMS.map((_, n) => `program${n}.ts`);
    for (const [n, { text }] of CLIENT_PROGRAMS.entries())
      await writeFile(join(folder, `program${n}.ts`), text);
    assert.deepEqual(await compile(folder, files), []);
    for (const [n, { name }] of CLIENT_PROGRAMS.entries()) {
      await t.test(name, async () => {
        assert.deepEqual(await run(`program${n}.ts`), [1, 'errCoordinates', 250, 1, 'DEVICE_NOT_FOUND']);
      });
    }
  });

  test('a program written with the types alone compiles, and does what it should', async () => {
    assert.deepEqual(await compile(folder, ['client.ts'], STRICTER), []);
    assert.deepEqual(await run('client.ts'), [
      `${IMEIS[0]} 0.000 41.9 true`,
      'null',
      `${IMEIS[0]} ${IMEIS[1]}`,
      `${IMEIS[2]}`,
      'true -250',
      'North depot',
      `${IMEIS[0]} read 04A1`,
      'whsec_',
      'exponential',
    ]);
  });

  test('each mistake in it is found by the compiler', async (t) => {
    for (const [n, [name, from, to]] of MISTAKES.entries()) {
      assert.equal(PROGRAM.split(from).length, 2, `${name}: ${from} stands in the program once`);
      await writeFile(join(folder, `mistake${n}.ts`), PROGRAM.replace(from, to));
    }
    const files = MISTAKES.map((_, n) => `mistake${n}.ts`);
    const complaints = await compile(folder, files, STRICTER);
    for (const [n, [name, , , expected]] of MISTAKES.entries()) {
      await t.test(name, () => {
        const own = complaints.filter((line) => line.startsWith(`mistake${n}.ts(`));
        assert.ok(
          own.some((line) => expected.test(line)),
          own.join('\n') || 'it compiles',
        );
      });
    }
  });
});
