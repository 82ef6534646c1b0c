import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CidrSet, parseCidrs } from '../../src/access/ipAddress.ts';
import { parseEndpointCreate, parseEndpointUpdate } from '../../src/webhooks/endpoint.ts';
import { runs } from '../support/torture.ts';

const NOBODY = new CidrSet([]);
const URL_TEXT = 'https://hook.example.com/in';
const LEAST = { url: URL_TEXT, events: ['alarm'] };

const create = (body: unknown) => parseEndpointCreate(body, NOBODY);
const update = (body: unknown) => parseEndpointUpdate(body, NOBODY);

/** `field CODE` of every error, or `url` for the error that stands alone. */
function errorsOf(result: ReturnType<typeof create> | ReturnType<typeof update>): string[] {
  if (result.ok) return [];
  if (result.error.kind === 'url_invalid') return ['url'];
  return result.error.errors.map(({ field, code }) => `${field} ${code}`).sort();
}

const badUrls = [
  '',
  'http://hook.example.com/',
  'https://127.0.0.1/',
  'https://localhost/',
  5,
  {},
  [URL_TEXT],
  true,
];

/** A field of either body with a value of it, and what is wrong with that. */
const badFields: [object, string][] = [
  [{ description: 5 }, 'description INVALID'],
  [{ description: ['a'] }, 'description INVALID'],
  [{ description: 'a\u0000b' }, 'description INVALID'],
  [{ description: 'a\u001bb' }, 'description INVALID'],
  [{ description: '\udc00' }, 'description INVALID'],
  [{ description: 'a'.repeat(257) }, 'description TOO_LONG'],
  [{ description: '\u{1f69a}'.repeat(257) }, 'description TOO_LONG'],
  [{ description: 'a'.repeat(600_000) }, 'description TOO_LONG'],
  [{ events: [] }, 'events REQUIRED'],
  [{ events: 'alarm' }, 'events INVALID'],
  [{ events: {} }, 'events INVALID'],
  [{ events: ['alarm', 'geofence'] }, 'events INVALID'],
  [{ events: ['alarm', 5] }, 'events INVALID'],
  [{ events: [null] }, 'events INVALID'],
  [{ events: ['*', 'nonsense'] }, 'events INVALID'],
  [{ retry_policy: 'linear' }, 'retry_policy INVALID'],
  [{ retry_policy: 'None' }, 'retry_policy INVALID'],
  [{ retry_policy: 0 }, 'retry_policy INVALID'],
  [{ max_retries: -1 }, 'max_retries OUT_OF_RANGE'],
  [{ max_retries: 11 }, 'max_retries OUT_OF_RANGE'],
  [{ max_retries: 2.5 }, 'max_retries OUT_OF_RANGE'],
  [{ max_retries: '5' }, 'max_retries OUT_OF_RANGE'],
  [{ max_retries: true }, 'max_retries OUT_OF_RANGE'],
  [{ active: 'true' }, 'active INVALID'],
  [{ active: 1 }, 'active INVALID'],
];

describe('the body that creates an endpoint', () => {
  test('needs a url and events, and has defaults for the rest', () => {
    const defaults = { description: null, retry_policy: 'exponential', max_retries: 5, active: true };
    const expected = { ok: true, value: { url: URL_TEXT, events: ['alarm'], ...defaults } };
    assert.deepEqual(create(LEAST), expected);
    const nulls = { description: null, retry_policy: null, max_retries: null, active: null };
    assert.deepEqual(create({ ...LEAST, ...nulls, secret: 'x', id: 5 }), expected);
  });

  test('may say everything', () => {
    const rest = { description: ' Two\nlines ', retry_policy: 'fixed', max_retries: 0, active: false };
    const events = ['alarm', '*', 'alarm', 'ping', 'geofence_enter'];
    assert.deepEqual(create({ url: 'https://HOOK.example.com./in', events, ...rest }), {
      ok: true,
      value: { url: URL_TEXT, events: ['alarm', '*', 'ping', 'geofence_enter'], ...rest },
    });
  });

  test('takes a description of 256 characters, whichever they are, every policy, and 0 to 10 attempts', () => {
    const fields = [
      ...['a'.repeat(256), '\u{1f69a}'.repeat(256), ''].map((description) => ({ description })),
      ...['none', 'fixed', 'exponential'].map((retry_policy) => ({ retry_policy })),
      ...Array.from({ length: 11 }, (_, max_retries) => ({ max_retries })),
    ];
    for (const field of fields) {
      const draft = create({ ...LEAST, ...field });
      assert.deepEqual(draft, { ok: true, value: { ...(draft.ok && draft.value), ...field } });
    }
  });

  test('is refused for a missing url together with every other invalid field', () => {
    assert.deepEqual(errorsOf(create({})), ['events REQUIRED', 'url REQUIRED']);
    assert.deepEqual(errorsOf(create({ ...LEAST, url: null, events: null })), [
      'events REQUIRED',
      'url REQUIRED',
    ]);
    const all = { description: 5, events: ['x'], retry_policy: 'x', max_retries: 11, active: 'x' };
    assert.deepEqual(errorsOf(create(all)), [
      'active INVALID',
      'description INVALID',
      'events INVALID',
      'max_retries OUT_OF_RANGE',
      'retry_policy INVALID',
      'url REQUIRED',
    ]);
  });

  test('is refused for its url before any other field is checked', () => {
    for (const url of badUrls) {
      assert.deepEqual(errorsOf(create({ ...LEAST, url })), ['url']);
      assert.deepEqual(errorsOf(create({ url, events: [], max_retries: 99 })), ['url']);
    }
  });

  test('may name an address that is exempt', () => {
    const exempt = parseCidrs('127.0.0.0/8');
    assert.ok(exempt.ok);
    const draft = parseEndpointCreate({ ...LEAST, url: 'https://127.0.0.1:8443/' }, exempt.value);
    assert.ok(draft.ok && draft.value.url === 'https://127.0.0.1:8443/');
  });
});

describe('the body that changes an endpoint', () => {
  const whole = {
    url: URL_TEXT,
    description: 'x',
    events: ['*', '*'],
    retry_policy: 'none',
    max_retries: 10,
    active: false,
  };

  test('changes what is sent, each field by itself or all at once', () => {
    assert.deepEqual(update(whole), { ok: true, value: { ...whole, events: ['*'] } });
    for (const [field, sent] of Object.entries(whole)) {
      const value = field === 'events' ? ['*'] : sent;
      assert.deepEqual(update({ [field]: sent }), { ok: true, value: { [field]: value } });
    }
  });

  test('changes nothing when nothing is sent, and removes the description only', () => {
    assert.deepEqual(update({}), { ok: true, value: {} });
    const nulls = Object.fromEntries(Object.keys(whole).map((field) => [field, null]));
    assert.deepEqual(update(nulls), { ok: true, value: { description: null } });
  });

  test('is refused for its url before any other field is checked', () => {
    for (const url of badUrls) assert.deepEqual(errorsOf(update({ url, active: 'x' })), ['url']);
  });
});

describe('either body', () => {
  for (const [field, error] of badFields) {
    const text = JSON.stringify(field);
    test(`${text.length > 60 ? `${text.slice(0, 60)}…` : text} is ${error}`, () => {
      assert.deepEqual(errorsOf(create({ ...LEAST, ...field })), [error]);
      assert.deepEqual(errorsOf(update(field)), [error]);
    });
  }

  test('is refused as a whole when it is no JSON object', () => {
    for (const body of [undefined, null, [], [LEAST], 'x', 5, true]) {
      assert.deepEqual(errorsOf(create(body)), ['null INVALID_BODY']);
      assert.deepEqual(errorsOf(update(body)), ['null INVALID_BODY']);
    }
  });

  test('never makes a parser throw', () => {
    const names = ['url', 'description', 'events', 'retry_policy', 'max_retries', 'active'];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.jsonValue()), (body) => {
        create(body);
        update(body);
      }),
      { seed: 20_260_301, numRuns: runs(75) },
    );
  });
});
