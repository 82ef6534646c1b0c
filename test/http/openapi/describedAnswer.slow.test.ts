import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkDescribed } from '../../support/http/describedAnswer.ts';
import { strictApi } from '../../support/http/strictApi.ts';
import { checkDelivery } from '../../support/webhooks/describedDelivery.ts';

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };
const BETA = { ...JSON_TYPE, 'x-api-status': 'beta' };

interface Case {
  readonly method?: string;
  readonly target: string;
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

function check({ method = 'GET', target, status, body, headers = BETA }: Case): void {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  checkDescribed({ method, target, status, header: (name) => headers[name], text });
}

/** An answer that the description shows. */
// biome-ignore lint/suspicious/noExplicitAny: tests spoil it in every way
function shown(path: string, method: string, status: number, example: string): any {
  const operation = strictApi().document.paths[path]?.[method] as {
    responses: Record<string, { content: Record<string, { examples: Record<string, { value: unknown }> }> }>;
  };
  const value = operation.responses[status]?.content['application/json']?.examples[example]?.value;
  assert.ok(value !== undefined, 'there is such an example');
  return structuredClone(value);
}

const error = (code: string, more: object = {}) => ({ error: { code, message: 'm', ...more } });
const AREA = '/api/v3/areas/42';
const area = () => shown('/api/v3/areas/{id}', 'get', 200, 'json');
const nearest = () => shown('/api/v3/devices/nearest', 'get', 200, 'one');
const events = () => shown('/api/v3/events', 'get', 200, 'one of each type');
const spoilt = <T>(value: T, spoil: (value: T) => void): T => {
  spoil(value);
  return value;
};

describe('what the tests receive is compared with the description', () => {
  const fine: readonly (readonly [string, Case])[] = [
    ['an area', { target: AREA, status: 200, body: area() }],
    ['HEAD', { method: 'HEAD', target: AREA, status: 200 }],
    ['an unknown path', { target: '/api/v3/unknown', status: 404, body: error('NOT_FOUND') }],
    [
      'an external id with slashes',
      { method: 'PUT', target: '/api/v3/areas/by-external-id/a/b', status: 400, body: error('BAD_REQUEST') },
    ],
    ['v2', { target: '/api/v2/devices', status: 200, body: { anything: true } }],
    ['the ingest listener', { target: '/positions', status: 500, body: 'anything' }],
  ];
  for (const [name, answer] of fine) test(`passes: ${name}`, () => check(answer));

  const wrong: readonly (readonly [string, Case, RegExp])[] = [
    [
      'a field that nobody documented',
      { target: AREA, status: 200, body: spoilt(area(), ({ data }) => Object.assign(data, { extra: 1 })) },
      /must NOT have additional properties|oneOf/,
    ],
    [
      'a field of another type, deep inside',
      {
        target: '/api/v3/devices/nearest',
        status: 200,
        body: spoilt(nearest(), ({ data }) => Object.assign(data[0].location, { latitude: '41.9' })),
      },
      /latitude must be number/,
    ],
    [
      'data of another type of event',
      {
        target: '/api/v3/events',
        status: 200,
        body: spoilt(events(), ({ data }) => Object.assign(data[2], { data: data[6].data })),
      },
      /data\/2/,
    ],
    [
      'a status that the operation has not',
      { target: AREA, status: 409, body: error('CONFLICT') },
      /this status/,
    ],
    [
      'a code that the operation has not',
      { target: AREA, status: 404, body: error('DEVICE_NOT_FOUND') },
      /code must be equal to one of/,
    ],
    [
      'an error as a plain string',
      { target: AREA, status: 403, body: { error: 'no' } },
      /error must be object/,
    ],
    [
      'HTML',
      { target: AREA, status: 404, body: '<p>', headers: { 'content-type': 'text/html' } },
      /content type/,
    ],
    ['a body on 204', { method: 'DELETE', target: AREA, status: 204, body: {} }, /no body/],
    [
      'a header that nobody documented',
      { target: AREA, status: 200, body: area(), headers: { ...BETA, etag: 'x' } },
      /ETag is not described/,
    ],
  ];
  for (const [name, answer, message] of wrong) {
    test(`refuses: ${name}`, () => assert.throws(() => check(answer), message));
  }
});

describe('what receivers of webhooks get is compared with the description', () => {
  const headers = {
    'x-service-signature': 's',
    'x-service-signature-version': 'v1',
    'x-service-timestamp': '1',
    'x-service-delivery-id': 'd',
    'x-service-delivery-attempt': '1',
    'idempotency-key': 'k',
    'webhook-id': 'i',
    'webhook-timestamp': '1',
    'webhook-signature': 's',
  };
  const ping = {
    id: `evt_${'0'.repeat(32)}`,
    type: 'ping',
    created_at: '2026-03-02T08:15:21.000Z',
    data: { message: 'm', webhook_id: 7 },
  };

  test('passes: a ping', () => checkDelivery(headers, JSON.stringify(ping)));

  test('refuses: data of another type', () => {
    assert.throws(
      () => checkDelivery(headers, JSON.stringify({ ...ping, type: 'rfid' })),
      /not as described/,
    );
  });

  test('refuses: a missing header', () => {
    const { 'webhook-id': _, ...others } = headers;
    assert.throws(() => checkDelivery(others, JSON.stringify(ping)), /webhook-id is missing/);
  });
});
