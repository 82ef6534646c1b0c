import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { AREA_ERRORS, AREA_WARNINGS } from '../../src/areas/areaFields.ts';
import type { READING_CODES } from '../../src/areas/import/importPlan.ts';
import { ERRORS } from '../../src/http/answer.ts';
import { REJECTIONS } from '../../src/ingest/formats/parsePoint.ts';
import { KEY_ERRORS } from '../../src/tenants/keyBody.ts';
import { ENDPOINT_ERRORS } from '../../src/webhooks/endpoint.ts';
import { feature } from '../areas/import/importBodies.ts';
import { collection, HOLE, LINE, POINT, RING, POLYGON as RINGS } from '../areas/reads/geojson.ts';
import { BEHIND_PROXY, type CallOptions, callApi, logIn, setPassword } from '../support/http/application.ts';
import { CIRCLE, PLACE, POLYGON, TRACK } from '../support/http/areas.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { INGEST_TOKEN, NO_LIMITS, type Reply, request } from '../support/pod.ts';

// Every code that an answer may carry, each with one request that it answers. The tables below are keyed by the codes
// of the registries, so that a new code without a request does not compile.

const SILENT = '350000000000001';
const HERE = '192.0.2.1';
/** More than all calls from there. */
const IP_MINUTE = 300;

/** Who calls, by what is special about the key; 'session' comes without one. */
type Caller =
  | `${'fine' | 'unknown' | 'revoked' | 'inactive' | 'blocked' | 'scopeless' | 'arealess' | 'pointless'}`
  | 'session'
  | 'nobody';
type Call = readonly [
  caller: Caller,
  method: string,
  path: string,
  body?: unknown,
  headers?: CallOptions['headers'],
];

const callers = new Map<Caller, CallOptions>([
  ['nobody', {}],
  ['unknown', { key: `fk_${'A'.repeat(43)}` }],
]);
let areaId: number;
const env = { ...NO_LIMITS, ...BEHIND_PROXY, RATE_LIMIT_IP_MINUTE: String(IP_MINUTE), ROLES: 'api,ingest' };
const owner = ownerPod({ env, devices: [{ imei: SILENT }] }, async ({ pod, admin, sql }) => {
  await setPassword(admin, OWNER);
  await admin.account('inactive@example.com');
  const key = async (caller: Caller, email: string, options = {}) => {
    const made = await admin.key(email, options);
    callers.set(caller, { key: made.key });
    return made.id;
  };
  await key('fine', OWNER);
  await key('inactive', 'inactive@example.com');
  await key('blocked', OWNER, { allow: '203.0.113.1' });
  await key('scopeless', OWNER, { scopes: 'read_history_summary' });
  await sql`
    insert into plan (name, history_days, max_areas, max_area_vertices) values ('arealess', 1, 0, 0), ('pointless', 1, 9, 2)`;
  for (const plan of ['arealess', 'pointless'] as const) {
    await admin.account(`${plan}@example.com`, { plan });
    await key(plan, `${plan}@example.com`);
  }
  await admin.run('key:revoke', '--id', String(await key('revoked', OWNER)));
  await admin.run('account:deactivate', '--email', 'inactive@example.com');
  callers.set('session', { token: await logIn(pod, OWNER) });
  const made = await send('fine', 'POST', '/v3/areas', { ...CIRCLE, external_id: 'taken' });
  areaId = made.body.data.id;
  await sql`
    insert into webhook (account_id, url, events, retry_policy, max_retries, active, secret)
    select id, 'https://hooks.example.com', '{*}', 'none', 0, false, '' from account, generate_series(1, 100)
    where email = ${OWNER}`;
  await sql`
    insert into api_key (account_id, fingerprint, prefix, scopes)
    select id, sha256(n::text::bytea), 'fk_abc', '{read_devices}' from account, generate_series(1, 1000) n
    where email = ${OWNER}`;
});
const { pod, admin } = owner;

const send = (...[caller, method, path, body, headers]: Call): Promise<Reply> =>
  callApi(pod, method, path.replace(':area', String(areaId)), {
    ip: HERE,
    ...callers.get(caller),
    ...(body === undefined ? {} : { body }),
    ...(headers === undefined ? {} : { headers }),
  });

/** A call of the listener for positions. */
const ingest = (body: unknown, token = INGEST_TOKEN): Promise<Reply> =>
  request(`${pod.ingest}/positions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': token },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

const DEVICE = `/v3/devices/${SILENT}`;
const NEAREST = '/v3/devices/nearest';

type Request = Call | (() => Promise<Reply>);

/** TOO_COMPLEX takes seconds: test/areas/overlap/areaOverlaps.slow.test.ts has it. */
const REQUESTS: Readonly<Record<Exclude<keyof typeof ERRORS, 'TOO_COMPLEX'>, Request>> = {
  BAD_REQUEST: ['fine', 'GET', '/v2/events?from=yesterday'],
  WEBHOOK_URL_INVALID: ['fine', 'POST', '/webhooks', { url: 'http://example.com', events: ['*'] }],
  IMEI_REQUIRED: ['fine', 'GET', '/v2/devices/%20/location'],
  COORDINATES_REQUIRED: ['fine', 'GET', `${NEAREST}?lat=1`],
  INVALID_COORDINATES: ['fine', 'GET', `${NEAREST}?lat=91&lng=1`],
  INVALID_BODY: () => ingest('{'),
  API_KEY_REQUIRED: ['session', 'GET', '/v3/devices'],
  API_KEY_INVALID: ['unknown', 'GET', '/v2/devices'],
  API_KEY_REVOKED: ['revoked', 'GET', '/v2/devices'],
  API_KEY_OWNER_INACTIVE: ['inactive', 'GET', '/v3/areas'],
  API_KEY_IP_BLOCKED: ['blocked', 'GET', '/v3/devices'],
  INSUFFICIENT_SCOPE: ['scopeless', 'GET', '/v3/devices'],
  FORBIDDEN: ['fine', 'POST', '/v1/keys', {}],
  NOT_FOUND: ['fine', 'GET', '/v3/areas/999999999'],
  DEVICE_NOT_FOUND: ['fine', 'GET', '/v2/devices/350000000000099'],
  LOCATION_NOT_FOUND: ['fine', 'GET', `${DEVICE}/location`],
  METHOD_NOT_ALLOWED: ['fine', 'DELETE', '/v2/devices'],
  SHARE_ENDED: async () => {
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const made = await send('fine', 'POST', '/v3/shares', { devices: [SILENT], expires_at });
    await send('fine', 'DELETE', `/v3/shares/${made.body.data.id}`);
    return send('fine', 'GET', `/share/${made.body.data.url.split('/').at(-1)}`);
  },
  CURSOR_EXPIRED: async () => {
    const first = await send('arealess', 'GET', '/v3/devices/changes');
    await admin.run('account:update', '--email', 'arealess@example.com', '--organization', 'Haulage');
    return send('arealess', 'GET', `/v3/devices/changes?cursor=${first.body.meta.cursor}`);
  },
  CONFLICT: ['fine', 'POST', '/v3/areas', { ...CIRCLE, external_id: 'taken' }],
  PAYLOAD_TOO_LARGE: ['fine', 'POST', '/v3/areas', ' '.repeat(1024 * 1024 + 1)],
  VALIDATION_ERROR: ['fine', 'POST', '/v3/areas', {}],
  HEADERS_TOO_LARGE: ['fine', 'GET', '/v2/devices', undefined, { 'X-Long': 'x'.repeat(17_000) }],
  TOO_MANY_REQUESTS: async () => {
    const call = () => callApi(pod, 'GET', '/v3/devices', { ip: '192.0.2.200' });
    await Promise.all(Array.from({ length: IP_MINUTE }, call));
    return call();
  },
  INTERNAL_ERROR: async () => {
    await owner.sql`alter table fleet_event rename to fleet_event_elsewhere`;
    const reply = await send('fine', 'GET', '/v2/events');
    await owner.sql`alter table fleet_event_elsewhere rename to fleet_event`;
    return reply;
  },
  SERVICE_UNAVAILABLE: async () => {
    // As a Postgres says it that has no memory left.
    await owner.sql`alter table command rename to command_elsewhere`;
    await owner.sql`
      create function give_up() returns setof command_elsewhere language plpgsql
      as $$ begin raise exception using errcode = '53200'; end $$`;
    await owner.sql`create view command as select * from give_up()`;
    const reply = await send('fine', 'GET', `${DEVICE}/commands`);
    await owner.sql`drop view command`;
    await owner.sql`drop function give_up()`;
    await owner.sql`alter table command_elsewhere rename to command`;
    return reply;
  },
};

const area = (body: unknown): Call => ['fine', 'POST', '/v3/areas', body];
const bowTie = [
  { lat: 0, lng: 0 },
  { lat: 1, lng: 1 },
  { lat: 1, lng: 0 },
  { lat: 0, lng: 1 },
];
const zigzag = Array.from({ length: 2001 }, (_, n) => ({ lat: n / 100, lng: n % 2 }));

const AREA_CALLS: Readonly<Record<keyof typeof AREA_ERRORS, Call>> = {
  bodyInvalid: area([]),
  nameRequired: area({ ...CIRCLE, name: ' ' }),
  nameTooLong: area({ ...CIRCLE, name: 'x'.repeat(101) }),
  nameInvalid: area({ ...CIRCLE, name: 'a\u0000b' }),
  typeInvalid: area({ ...CIRCLE, type: 'square' }),
  typeMisfit: area({ type: 'polyline', geojson: feature({ name: 'A' }) }),
  colorInvalid: area({ ...CIRCLE, color: 'red' }),
  centerRequired: area({ ...PLACE, center: null }),
  centerInvalid: area({ ...CIRCLE, center: { lat: 91, lng: 0 } }),
  radiusRequired: area({ ...CIRCLE, radius_m: null }),
  circleRadiusOutOfRange: area({ ...CIRCLE, radius_m: 24 }),
  pointRadiusOutOfRange: area({ ...PLACE, radius_m: 100_001 }),
  bufferOutOfRange: area({ ...TRACK, buffer_m: 4 }),
  pointsInvalid: area({ ...POLYGON, points: [{ lat: 'x' }] }),
  pointsTooFew: area({ ...POLYGON, points: POLYGON.points.slice(0, 2) }),
  pointsTooMany: area({ ...TRACK, points: zigzag }),
  selfIntersection: area({ ...POLYGON, points: bowTie }),
  externalIdInvalid: area({ ...CIRCLE, external_id: 'a b' }),
  externalIdMismatch: ['fine', 'PUT', '/v3/areas/by-external-id/a', { ...CIRCLE, external_id: 'b' }],
  externalIdTaken: ['fine', 'PATCH', '/v3/areas/:other', { external_id: 'taken' }],
  dwellOutOfRange: area({ ...CIRCLE, dwell_seconds: 86_401 }),
  geojsonInvalid: area({ name: 'A', geojson: { type: 'Feature', geometry: null } }),
  importInvalid: ['fine', 'POST', '/v3/areas/import', { type: 'Topology' }],
  tooManyAreas: ['arealess', 'POST', '/v3/areas', CIRCLE],
  tooManyVertices: ['pointless', 'POST', '/v3/areas', POLYGON],
  dryRunInvalid: ['fine', 'POST', '/v3/areas/import', { ...feature({ name: 'A' }), dry_run: 1 }],
};

const hook = (others: object): Call => ['fine', 'POST', '/webhooks', { ...HOOK, ...others }];
const HOOK = { url: 'https://hooks.example.com', events: ['*'] };

const WEBHOOK_CALLS: Readonly<Record<keyof typeof ENDPOINT_ERRORS, Call>> = {
  bodyInvalid: ['fine', 'POST', '/webhooks', []],
  limitReached: hook({}),
  urlRequired: hook({ url: null }),
  descriptionInvalid: hook({ description: 7 }),
  descriptionTooLong: hook({ description: 'x'.repeat(257) }),
  eventsRequired: hook({ events: [] }),
  eventsInvalid: hook({ events: ['nope'] }),
  retryPolicyInvalid: hook({ retry_policy: 'always' }),
  maxRetriesOutOfRange: hook({ max_retries: 11 }),
  activeInvalid: hook({ active: 'yes' }),
};

const keyWith = (others: object): Call => ['session', 'POST', '/v1/keys', { ...KEY, ...others }];
const KEY = { name: 'N', scopes: ['read_areas'], allowlist: [] };

const KEY_CALLS: Readonly<Record<keyof typeof KEY_ERRORS, Call>> = {
  limitReached: keyWith({}),
  nameRequired: keyWith({ name: '' }),
  nameInvalid: keyWith({ name: '\u0007' }),
  nameTooLong: keyWith({ name: 'x'.repeat(101) }),
  scopesRequired: keyWith({ scopes: [] }),
  scopesInvalid: keyWith({ scopes: ['fly'] }),
  allowlistInvalid: keyWith({ allowlist: 'x' }),
  allowlistTooLong: keyWith({ allowlist: Array(51).fill(HERE) }),
  expiresAtInvalid: keyWith({ expires_at: '2020-01-01' }),
  groupsInvalid: keyWith({ groups: [' '] }),
  groupsTooLong: keyWith({ groups: Array(21).fill('north') }),
};

const MULTI_CODE = 'MULTI_GEOMETRY_EXTERNAL_ID';
const corner = (n: number) => [n / 100, n % 2];

/** A body of an import, and the one error that it gives. */
const IMPORT_BODIES: Readonly<Record<(typeof READING_CODES)[number] | typeof MULTI_CODE, unknown>> = {
  errGeoJsonInvalid: collection(null),
  errGeometryUnsupported: feature({ name: 'A' }, { type: 'GeometryCollection', geometries: [POINT] }),
  errCoordinates: feature({ name: 'A' }, { ...POINT, coordinates: [181, 0] }),
  errTooManyPoints: feature({ name: 'A' }, { ...LINE, coordinates: zigzag.map((_, n) => corner(n)) }),
  errPolygonMin: feature({ name: 'A' }, { ...RINGS, coordinates: [RING.slice(0, 2)] }),
  errPolylineMin: feature({ name: 'A' }, { ...LINE, coordinates: LINE.coordinates.slice(0, 1) }),
  errTooManyFeatures: collection(...Array.from({ length: 201 }, (_, n) => feature({ name: `A ${n}` }))),
  MULTI_GEOMETRY_EXTERNAL_ID: feature(
    { name: 'A', external_id: 'multi' },
    { type: 'MultiPoint', coordinates: [POINT.coordinates, [0, 0]] },
  ),
};

const WARNING_BODIES: Readonly<Record<keyof typeof AREA_WARNINGS, object>> = {
  warnHolesIgnored: { geojson: feature({ name: 'A' }, { ...RINGS, coordinates: [RING, HOLE] }) },
  warnSimplifiedDuplicates: { ...TRACK, points: [TRACK.points[0], ...TRACK.points] },
  warnVerySmallArea: {
    ...POLYGON,
    points: POLYGON.points.map(({ lat, lng }) => ({ lat: lat / 2_000, lng: lng / 2_000 })),
  },
  warnVeryLargeArea: { ...CIRCLE, radius_m: 100_000 },
};

const FIX = { imei: SILENT, recorded_at: Date.now(), latitude: 1, longitude: 1 };

/** TOO_COMPLEX takes ten seconds: test/ingest/heavyPoints.slow.test.ts has it sooner. */
const REJECTED_POINTS: Readonly<Record<Exclude<keyof typeof REJECTIONS, 'TOO_COMPLEX'>, unknown>> = {
  INVALID_BODY: 7,
  INVALID_IMEI: { ...FIX, imei: '12' },
  INVALID_COORDINATES: { ...FIX, latitude: 0, longitude: 0 },
  INVALID_TIMESTAMP: { ...FIX, recorded_at: 'soon' },
  FUTURE_TIMESTAMP: { ...FIX, recorded_at: Date.now() + 3_600_000 },
  TOO_OLD: { ...FIX, recorded_at: '2001-01-01T00:00:00Z' },
  UNKNOWN_DEVICE: { ...FIX, imei: '350000000000099' },
};

describe('every error code is the answer to a request', () => {
  for (const [code, sent] of Object.entries(REQUESTS)) {
    const [status] = ERRORS[code as keyof typeof ERRORS];
    test(`${status} ${code}`, async () => {
      const reply = await (typeof sent === 'function' ? sent() : send(...sent));
      assert.equal(reply.status, status, reply.text);
      assert.equal(reply.body.error.code, code);
      assert.equal(typeof reply.body.error.message, 'string');
      assert.equal('details' in reply.body.error, code === 'VALIDATION_ERROR');
    });
  }
});

describe('every error of a field is a detail of a 422', () => {
  let other: number;
  before(async () => {
    other = (await send(...area(CIRCLE))).body.data.id;
  });

  const FAMILIES: readonly (readonly [string, object, Readonly<Record<string, Call>>])[] = [
    ['area', AREA_ERRORS, AREA_CALLS],
    ['webhook', ENDPOINT_ERRORS, WEBHOOK_CALLS],
    ['key', KEY_ERRORS, KEY_CALLS],
  ];
  for (const [family, errors, calls] of FAMILIES) {
    for (const [name, [caller, method, path, body]] of Object.entries(calls)) {
      const error = (errors as Record<string, { field: string | null; code: string }>)[name];
      test(`${family}: ${error?.field} ${error?.code} (${name})`, async () => {
        const reply = await send(caller, method, path.replace(':other', String(other)), body);
        assert.deepEqual([reply.status, reply.body.error.code], [422, 'VALIDATION_ERROR'], reply.text);
        assert.deepEqual(reply.body.error.details, [error]);
      });
    }
  }
});

describe('every error of an import is one of its errors[]', () => {
  for (const [code, body] of Object.entries(IMPORT_BODIES)) {
    test(code, async () => {
      const reply = await send('fine', 'POST', '/v3/areas/import?dry_run=true', body);
      const [error, ...more] = reply.body.data.errors;
      assert.equal(more.length, 0, reply.text);
      assert.deepEqual([error.code, 'message' in error], [code, code === MULTI_CODE]);
      assert.equal(error.index, code === 'errTooManyFeatures' ? -1 : 0);
    });
  }
});

describe('every warning comes with an area that is accepted', () => {
  for (const [code, body] of Object.entries(WARNING_BODIES)) {
    test(code, async () => {
      const reply = await send(...area(body));
      assert.equal(reply.status, 201, reply.text);
      assert.deepEqual(reply.body.meta.warnings, [AREA_WARNINGS[code as keyof typeof AREA_WARNINGS]]);
    });
  }
});

describe('every reason to reject a point is one of rejected[]', () => {
  for (const [code, point] of Object.entries(REJECTED_POINTS)) {
    test(code, async () => {
      const { status, body, text } = await ingest([point]);
      assert.equal(status, 200, text);
      assert.deepEqual(body.data.rejected, [{ index: 0, ...REJECTIONS[code as keyof typeof REJECTIONS] }]);
    });
  }
});
