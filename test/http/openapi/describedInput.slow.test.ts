import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CidrSet } from '../../../src/access/ipAddress.ts';
import { completeDraft, mergeDraft, parseDraft } from '../../../src/areas/areaDraft.ts';
import { isExternalId } from '../../../src/areas/areaFields.ts';
import { IDEMPOTENCY_KEY } from '../../../src/areas/createOnce.sql.ts';
import { isImei } from '../../../src/devices/device.ts';
import { parseEventTypeFilter } from '../../../src/events/fleetEvent.ts';
import { parseEndpointCreate, parseEndpointUpdate } from '../../../src/webhooks/endpoint.ts';
import { CIRCLE, PLACE, POLYGON, TRACK, validArea } from '../../support/http/areas.ts';
import { describedApi } from '../../support/http/describedApi.ts';
import { StrictApi } from '../../support/http/strictApi.ts';

const api = new StrictApi(describedApi(), { allowsOthers: true });
const isDescribed = (schema: string, value: unknown): boolean =>
  api.mismatchOf(['components', 'schemas', schema], value) === null;

const CENTER = { lat: 41.9, lng: 12.5 };
const zigzag = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ lat: 41 + n / 1_000, lng: 12 + (n % 2) / 1_000 }));
const wrap = (geometry: object) => ({ geojson: { type: 'Feature', properties: { name: 'A' }, geometry } });

/** Bodies that make an area, and whether the service takes them. */
const AREA_BODIES: readonly (readonly [body: unknown, isTaken: boolean])[] = [
  [CIRCLE, true],
  [PLACE, true],
  [POLYGON, true],
  [TRACK, true],
  [{ ...CIRCLE, name: 'x'.repeat(100) }, true],
  [{ ...CIRCLE, name: '🚚'.repeat(100) }, true],
  [{ ...CIRCLE, name: 'x'.repeat(101) }, false],
  [{ ...CIRCLE, name: '' }, false],
  [{ ...CIRCLE, type: undefined }, false],
  [{ ...CIRCLE, color: '#aBcDeF' }, true],
  [{ ...CIRCLE, color: '#abc' }, false],
  [{ ...CIRCLE, center: undefined }, false],
  [{ ...CIRCLE, center: { lat: 90, lng: -180 } }, true],
  [{ ...CIRCLE, center: { lat: 90.1, lng: 0 } }, false],
  [{ ...CIRCLE, center: { lat: 0, lng: 180.1 } }, false],
  [{ ...CIRCLE, center: { lat: '0', lng: 0 } }, false],
  [{ ...CIRCLE, radius_m: 25 }, true],
  [{ ...CIRCLE, radius_m: 24.9 }, false],
  [{ ...CIRCLE, radius_m: 100_000 }, true],
  [{ ...CIRCLE, radius_m: 100_001 }, false],
  [{ ...CIRCLE, radius_m: null }, false],
  [{ ...PLACE, radius_m: null }, true],
  [{ ...PLACE, radius_m: 0.1 }, true],
  [{ ...PLACE, radius_m: 0 }, false],
  [{ ...TRACK, buffer_m: 5 }, true],
  [{ ...TRACK, buffer_m: 4.9 }, false],
  [{ ...TRACK, buffer_m: 5_000 }, true],
  [{ ...TRACK, buffer_m: 5_001 }, false],
  [{ ...TRACK, points: zigzag(2) }, true],
  [{ ...TRACK, points: zigzag(1) }, false],
  [{ ...TRACK, points: zigzag(2_000) }, true],
  [{ ...TRACK, points: zigzag(2_001) }, false],
  [{ ...POLYGON, points: zigzag(3) }, true],
  [{ ...POLYGON, points: zigzag(2) }, false],
  [{ ...CIRCLE, external_id: 'a/b:c#1' }, true],
  [{ ...CIRCLE, external_id: null }, true],
  [{ ...CIRCLE, external_id: 'x'.repeat(101) }, false],
  [{ ...CIRCLE, external_id: 'with blank' }, false],
  [{ ...CIRCLE, dwell_seconds: 0 }, true],
  [{ ...CIRCLE, dwell_seconds: 86_400 }, true],
  [{ ...CIRCLE, dwell_seconds: 86_401 }, false],
  [{ ...CIRCLE, dwell_seconds: 1.5 }, false],
  [wrap({ type: 'Point', coordinates: [12.5, 41.9] }), true],
  [{ name: 'A', geojson: { type: 'Point', coordinates: [12.5, 41.9, 30] } }, true],
  [
    wrap({
      type: 'LineString',
      coordinates: [
        [12.5, 41.9],
        [12.6, 41.9],
      ],
    }),
    true,
  ],
  [wrap({ type: 'Point', coordinates: [12.5] }), false],
  [wrap({ type: 'Polygon', coordinates: [12.5, 41.9] }), false],
  [{ geojson: {} }, false],
  [[], false],
  [null, false],
];

/** Changes of a circle. */
const AREA_CHANGES: readonly (readonly [body: unknown, isTaken: boolean])[] = [
  [{}, true],
  [{ name: null, color: null, center: null, radius_m: null, points: null, dwell_seconds: null }, true],
  [{ external_id: null }, true],
  [{ name: '' }, false],
  [{ radius_m: 100_001 }, false],
  [{ center: CENTER }, true],
  [{ center: { lat: 91, lng: 0 } }, false],
  [{ dwell_seconds: 86_401 }, false],
  [{ type: 'polygon', points: zigzag(3) }, true],
  [{ geojson: { type: 'Point', coordinates: [12.5, 41.9] } }, true],
  [[], false],
];

const LEAST = { url: 'https://hook.example.com/in', events: ['alarm'] };
const WEBHOOK_BODIES: readonly (readonly [body: unknown, isTaken: boolean])[] = [
  [LEAST, true],
  [{ ...LEAST, events: ['*'] }, true],
  [{ ...LEAST, events: ['geofence_enter', 'ping'] }, true],
  [{ ...LEAST, events: ['geofence'] }, false],
  [{ ...LEAST, events: [] }, false],
  [{ url: LEAST.url }, false],
  [{ events: ['alarm'] }, false],
  [{ ...LEAST, url: `https://hook.example.com/${'x'.repeat(2023)}` }, true],
  [{ ...LEAST, url: `https://hook.example.com/${'x'.repeat(2024)}` }, false],
  [{ ...LEAST, description: 'x'.repeat(256) }, true],
  [{ ...LEAST, description: 'x'.repeat(257) }, false],
  [{ ...LEAST, description: null, retry_policy: null, max_retries: null, active: null }, true],
  [{ ...LEAST, retry_policy: 'fixed' }, true],
  [{ ...LEAST, retry_policy: 'linear' }, false],
  [{ ...LEAST, max_retries: 0 }, true],
  [{ ...LEAST, max_retries: 10 }, true],
  [{ ...LEAST, max_retries: 11 }, false],
  [{ ...LEAST, max_retries: 2.5 }, false],
  [{ ...LEAST, active: 'true' }, false],
  [[], false],
];

const NOBODY = new CidrSet([]);

const TABLES: readonly (readonly [
  schema: string,
  rows: typeof AREA_BODIES,
  takes: (body: unknown) => boolean,
])[] = [
  [
    'AreaInput',
    AREA_BODIES,
    (body) => {
      const draft = parseDraft(body);
      return draft.ok && completeDraft(draft.value).ok;
    },
  ],
  [
    'AreaChange',
    AREA_CHANGES,
    (body) => {
      const draft = parseDraft(body);
      return draft.ok && mergeDraft(validArea(CIRCLE).definition, draft.value).ok;
    },
  ],
  ['WebhookInput', WEBHOOK_BODIES, (body) => parseEndpointCreate(body, NOBODY).ok],
  [
    'WebhookChange',
    [
      [{}, true],
      [{ url: null, events: null }, true],
      [{ active: false }, true],
      ...WEBHOOK_BODIES.filter(
        ([body]) => body !== null && typeof body === 'object' && 'url' in body && 'events' in body,
      ),
    ],
    (body) => parseEndpointUpdate(body, NOBODY).ok,
  ],
];

describe('the description of a body takes and refuses what the service does', () => {
  for (const [schema, rows, takes] of TABLES) {
    for (const [sent, isTaken] of rows) {
      const body: unknown = sent === null ? null : JSON.parse(JSON.stringify(sent));
      test(`${schema} ${isTaken ? 'takes' : 'refuses'} ${JSON.stringify(body).slice(0, 90)}`, () => {
        assert.equal(takes(body), isTaken, 'the service');
        assert.equal(isDescribed(schema, body), isTaken, 'the description');
      });
    }
  }
});

/** The schema of a parameter of an operation. */
function isParameter(path: string, method: string, name: string, value: unknown): boolean {
  const operation = api.document.paths[path]?.[method] as { parameters: { name: string }[] } | undefined;
  assert.ok(operation);
  const at = operation.parameters.findIndex((parameter) => parameter.name === name);
  assert.notEqual(at, -1);
  return api.mismatchOf(['paths', path, method, 'parameters', String(at), 'schema'], value) === null;
}

const TEXTS = [
  '',
  'a',
  'a b',
  'x'.repeat(100),
  'x'.repeat(101),
  'x'.repeat(200),
  'x'.repeat(201),
  'a/b',
  'a:b',
  'ä',
  '#1',
];
const DIGITS = [13, 14, 15, 17, 18].map((count) => '3'.repeat(count));

describe('the description of a parameter takes and refuses what the service does', () => {
  for (const value of [...TEXTS, ...DIGITS]) {
    test(JSON.stringify(value.slice(0, 30)), () => {
      const code = isParameter('/api/v3/areas/by-external-id/{externalId}', 'put', 'externalId', value);
      assert.equal(code, isExternalId(value));
      assert.equal(
        isParameter('/api/v3/areas', 'post', 'Idempotency-Key', value),
        IDEMPOTENCY_KEY.test(value),
      );
      assert.equal(isParameter('/api/v3/devices/{imei}', 'get', 'imei', value), isImei(value));
      assert.equal(isParameter('/api/v3/events', 'get', 'device', value), isImei(value));
    });
  }

  test('types of events', () => {
    const types = [
      'geofence',
      'geofence_enter',
      'geofence_entry',
      'geofence_exit',
      'rfid',
      'ping',
      'nonsense',
    ];
    for (const type of types) {
      const described = isParameter('/api/v3/events', 'get', 'type', type);
      assert.equal(described, parseEventTypeFilter(type) !== null, type);
    }
  });
});
