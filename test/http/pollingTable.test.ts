import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PollingTable } from '../../src/http/pollingTable.ts';
import { type ApiVersion, BOTH_VERSIONS, type Route } from '../../src/http/route.ts';

const route = (path: string, versions: readonly ApiVersion[], more: object = {}) =>
  ({
    method: 'GET',
    path,
    scopes: 1,
    versions,
    handle: () => ({ status: 200, body: '{}' }),
    ...more,
  }) as unknown as Route;

const table = new PollingTable([
  route('/devices', BOTH_VERSIONS, { isPolled: true }),
  route('/devices/nearest', BOTH_VERSIONS, { isPolled: true }),
  route('/devices/:imei', BOTH_VERSIONS, { isPolled: true }),
  route('/devices/:imei/location', BOTH_VERSIONS, { isPolled: true }),
  route('/devices/:imei/history', BOTH_VERSIONS),
  route('/areas/:id', ['v3'], { isPolled: true }),
  route('/areas/import', ['v3'], { method: 'POST' }),
  route('/areas/by-external-id/*externalId', ['v3'], { method: 'PUT' }),
  route('/', ['webhooks']),
]);

describe('a target that names a polled route', () => {
  for (const [target, pattern, params] of [
    ['/api/v2/devices', '/api/v2/devices', {}],
    ['/api/v3/devices', '/api/v3/devices', {}],
    ['/api/v3/devices?', '/api/v3/devices', {}],
    ['/api/v3/devices?limit=5&a=/b/c', '/api/v3/devices', {}],
    ['/api/v3/devices/nearest?lat=1&lng=2', '/api/v3/devices/nearest', {}],
    ['/api/v2/devices/350000000000017', '/api/v2/devices/:imei', { imei: '350000000000017' }],
    ['/api/v3/devices/x?y=/location', '/api/v3/devices/:imei', { imei: 'x' }],
    ['/api/v3/devices/1/location', '/api/v3/devices/:imei/location', { imei: '1' }],
    ['/api/v3/devices/nearest/location', '/api/v3/devices/:imei/location', { imei: 'nearest' }],
    ['/api/v3/areas/12', '/api/v3/areas/:id', { id: '12' }],
  ] as const) {
    test(`${target} is ${pattern}`, () => {
      const match = table.find(target);
      assert.equal(match?.entry.pattern, pattern);
      assert.deepEqual(match?.params, params);
    });
  }
});

describe('any other target is left to the router:', () => {
  for (const target of [
    ...['', '/', '*', '/api/v3', '/api/v3/', '/api/v30/devices', '/api/v4/devices'],
    ...['/api/v1/devices', '/API/v3/devices', '/api/v3/Devices', '/api/v3/devices/'],
    ...['/api/v3/devices/nearest/', '/api/v3//devices', '/api/v3/devices//location'],
    ...['/api/v3/devices//', '/api/v3/devices/1/', '/api/v3/devices/1/location/'],
    ...['/api/v3/devices/1/locations', '/api/v3/devices/1/history', '/api/v3/devices/%31'],
    ...['/api/v3/devices/1%2Flocation', '/api/v3/devices/1;a=b', '/api/v3/devices/..'],
    ...['/api/v3/devices/1 2', '/api/v3/devices/é', '/api/v3/devices/1/location/x'],
    ...['/api/v3/areas/import', '/api/v3/areas/by-external-id/a', '/api/v2/areas/12'],
    ...['/api/webhooks', '/api/v3/__proto__', '/api/v3/constructor/x'],
  ]) {
    test(JSON.stringify(target), () => assert.equal(table.find(target), null));
  }
});

test('a route that takes a body, or is no GET, cannot be polled', () => {
  for (const more of [{ maxBodyBytes: 1 }, { method: 'POST' }] as const) {
    assert.throws(() => new PollingTable([route('/a', ['v3'], { isPolled: true, ...more })]));
  }
});

test('a path of another form than /a, /a/b, /a/:p and /a/:p/b cannot be polled', () => {
  for (const path of ['/', '/a/:b/:c', '/a/*rest', '/:a']) {
    assert.throws(() => new PollingTable([route(path, ['v3'], { isPolled: true })]), path);
  }
});
