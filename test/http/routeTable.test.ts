import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ApiVersion, BOTH_VERSIONS, type Route } from '../../src/http/route.ts';
import { type FoundPath, paramsOf, RouteTable } from '../../src/http/routeTable.ts';

const route = (path: string, versions: readonly ApiVersion[], more: object = {}) =>
  ({
    method: 'GET',
    path,
    scopes: 1,
    versions,
    handle: () => ({ status: 200, body: '{}' }),
    ...more,
  }) as unknown as Route;

const table = new RouteTable([
  route('/devices', BOTH_VERSIONS),
  route('/devices/nearest', BOTH_VERSIONS),
  route('/devices/:imei', BOTH_VERSIONS),
  route('/devices/:imei/location', BOTH_VERSIONS),
  route('/areas', ['v3'], { method: 'POST' }),
  route('/areas', ['v3']),
  route('/areas/:id', ['v3']),
  route('/areas/:id/events', ['v3']),
  route('/areas/import', ['v3'], { method: 'POST' }),
  route('/areas/by-external-id/*externalId', ['v3'], { method: 'PUT' }),
  route('/tiles/:z/:x/:y.mvt', ['v3']),
  route('/', ['webhooks']),
  route('/:id', ['webhooks']),
  route('/:id/deliveries', ['webhooks']),
  route('/metrics/summary', ['webhooks']),
]);

/** Node refuses targets with blanks. */
const rows: readonly (readonly [
  target: string,
  pattern: string,
  params: Readonly<Record<string, string>>,
])[] = [
  ['/api/v2/devices', '/api/v2/devices', {}],
  ['/api/v3/devices', '/api/v3/devices', {}],
  ['/api/v3/devices/', '/api/v3/devices', {}],
  ['/api/v3/devices?', '/api/v3/devices', {}],
  ['/api/v3/devices/?limit=5&a=/b/c', '/api/v3/devices', {}],
  ['/api/v3/devices/nearest?lat=1&lng=2', '/api/v3/devices/nearest', {}],
  ['/api/v2/devices/350000000000017', '/api/v2/devices/:imei', { imei: '350000000000017' }],
  ['/api/v3/devices/x/?y=/location', '/api/v3/devices/:imei', { imei: 'x' }],
  ['/api/v3/devices/1/location', '/api/v3/devices/:imei/location', { imei: '1' }],
  ['/api/v3/devices/nearest/location', '/api/v3/devices/:imei/location', { imei: 'nearest' }],
  ['/api/v3/devices//location', '/api/v3/devices/:imei/location', {}],
  ['/api/v3/devices/%31', '/api/v3/devices/:imei', { imei: '1' }],
  ['/api/v3/devices/1%2Flocation', '/api/v3/devices/:imei', { imei: '1/location' }],
  ['/api/v3/devices/%zz/location', '/api/v3/devices/:imei/location', { imei: '\0' }],
  ['/api/v3/devices/..', '/api/v3/devices/:imei', { imei: '..' }],
  ['/api/v3/areas/12', '/api/v3/areas/:id', { id: '12' }],
  ['/api/v3/tiles/1/2/3.mvt', '/api/v3/tiles/:z/:x/:y.mvt', { z: '1', x: '2', y: '3' }],
  ['/api/v3/tiles/a//%31.mvt/?x=1', '/api/v3/tiles/:z/:x/:y.mvt', { z: 'a', x: '', y: '1' }],
  ['/api/v3/tiles/1/%zz/3.mvt', '/api/v3/tiles/:z/:x/:y.mvt', { z: '1', x: '\0', y: '3' }],
  ['/api/v3/areas/import', '/api/v3/areas/import', {}],
  ['/api/v3/areas/import/events', '/api/v3/areas/:id/events', { id: 'import' }],
  ['/api/v3/areas/by-external-id/a', '/api/v3/areas/by-external-id/*externalId', { externalId: 'a' }],
  [
    '/api/v3/areas/by-external-id/a%2Fb/c/',
    '/api/v3/areas/by-external-id/*externalId',
    { externalId: 'a/b/c' },
  ],
  ['/api/v3/areas/by-external-id/a//?b', '/api/v3/areas/by-external-id/*externalId', { externalId: 'a/' }],
  [
    '/api/v3/areas/by-external-id/events',
    '/api/v3/areas/by-external-id/*externalId',
    { externalId: 'events' },
  ],
  ['/api/v3/areas/by-external-id/', '/api/v3/areas/by-external-id/*externalId', { externalId: '' }],
  ['/api/v3/areas/by-external-id', '/api/v3/areas/by-external-id/*externalId', { externalId: '' }],
  ['/api/webhooks', '/api/webhooks/', {}],
  ['/api/webhooks/?a', '/api/webhooks/', {}],
  ['/api/webhooks/metrics', '/api/webhooks/:id', { id: 'metrics' }],
  ['/api/webhooks/metrics/deliveries', '/api/webhooks/:id/deliveries', { id: 'metrics' }],
  ['/api/webhooks//deliveries', '/api/webhooks/:id/deliveries', {}],
];

describe('a target that names a route', () => {
  for (const [target, pattern, params] of rows) {
    test(`${target} is ${pattern}`, () => {
      const found = table.find(target);
      assert.equal(found?.path?.pattern, pattern);
      assert.deepEqual(paramsOf(found as FoundPath), params);
    });
  }

  test('throws where all that is left of its path does not decode', () => {
    const found = table.find('/api/v3/areas/by-external-id/%zz');
    assert.throws(() => paramsOf(found as FoundPath), URIError);
  });

  test('has its methods, HEAD beside GET', () => {
    const path = table.find('/api/v3/areas')?.path;
    assert.deepEqual(path?.allowed, ['POST', 'GET', 'HEAD']);
    assert.deepEqual([...(path?.byMethod.keys() ?? [])], ['POST', 'GET', 'HEAD']);
  });
});

test('a path with several parameters, one of which takes all that is left, is refused', () => {
  assert.throws(() => new RouteTable([route('/a/:b/*c', ['v3'])]));
});

test('a target with too few or too many segments for several parameters is no path', () => {
  for (const rest of ['', '/1/2.mvt', '/1/2/3.png', '/1/2/3.mvt/4', '/1/2/3/4.mvt', '/1/2/3xmvt']) {
    assert.equal(table.find(`/api/v3/tiles${rest}`)?.path, null, rest);
  }
});
