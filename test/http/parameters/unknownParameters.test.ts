import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readQuery, unknownParametersText } from '../../../src/http/parameters.ts';
import { knownParameters } from '../../../src/http/routeTable.ts';
import { openAnswer } from '../../support/feeds/feedReader.ts';
import { anyCharacter } from '../../support/http/anyCharacter.ts';
import { apiSide, keyOf } from '../../support/http/apiSide.ts';
import { describedApi, describedRoutes } from '../../support/http/describedApi.ts';
import { bareRequest } from '../../support/http/http.ts';
import { ownerPod } from '../../support/ownerPod.ts';
import { NO_LIMITS } from '../../support/pod.ts';
import { runs } from '../../support/torture.ts';

const HEADER = 'x-unknown-parameters';
/** What an element may hold: characters of a token (RFC 9110 section 5.6.2), or the empty name. */
const ELEMENT = /^(?:[\w\-.!~*'%]{1,64}|"")$/;

const namesIn = (target: string, known: readonly string[] = []): readonly string[] =>
  readQuery(target, new Set(known)).unknown ?? [];

describe('the names of unknown parameters', () => {
  const rows: readonly (readonly [query: string, header: string])[] = [
    ['a=1&lat=2&b', 'a,b'],
    ['filter[status]=x&b%20c=1&d+e', 'filter%5Bstatus%5D,b%20c,d%20e'],
    ['a%0d%0aSet-Cookie:x=1', 'a%0D%0ASet-Cookie%3Ax'],
    ['a%2cb=1&(c)=1&%22=1', 'a%2Cb,%28c%29,%22'],
    ['__proto__=1&constructor=2', '__proto__,constructor'],
    ['=1&x=2', '"",x'],
    ['a&b&c&d&e&f&g&h&i&j&k&l', 'a,b,c,d,e,f,g,h,i,j'],
    [`${'x'.repeat(65)}=1`, 'x'.repeat(64)],
    [`${'x'.repeat(62)}%C3%BC=1`, 'x'.repeat(62)],
    [`${'x'.repeat(63)}%F0%9F%9A%9A=1`, 'x'.repeat(63)],
    ['%ff%fe=1', '%EF%BF%BD%EF%BF%BD'],
  ];
  for (const [query, header] of rows) {
    test(`of ?${query.slice(0, 40)} are ${header.slice(0, 40)}`, () => {
      assert.equal(unknownParametersText(namesIn(`/a?${query}`, ['lat'])), header);
    });
  }

  test('are found beside a parameter that is given twice', () => {
    assert.deepEqual(namesIn('/a?b=1&b=2&c=3&lat=1', ['lat']), ['b', 'c']);
    assert.deepEqual(namesIn('/a?%62=1&b=2&c=3&lat=1', ['lat']), ['b', 'c']);
  });

  test('are none where nobody asks for them, or all are known', () => {
    assert.equal(readQuery('/a?b=1', null).unknown, null);
    assert.equal(readQuery('/a?lat=1&lng=%31', new Set(['lat', 'lng'])).unknown, null);
    assert.equal(readQuery('/a', new Set()).unknown, null);
  });
});

/** Of the routes of the side: the broken ones are described like nearest. */
const knownIn = (path: string): ReadonlySet<string> | null => {
  const route = describedRoutes().find((each) => each.path === path);
  assert.ok(route);
  return knownParameters('v3', route);
};

const side = apiSide();

const get = (target: string, version = 'v3') =>
  bareRequest(side.url, `/api/${version}${target}`, { headers: { 'X-API-Key': keyOf('now') } });

test('any names are answered in a header that holds nothing but tokens, whatever the answer is', async () => {
  const name = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 80 }).map(encodeURIComponent),
    fc.string({ maxLength: 20 }).map((text) => text.replace(/[^!$-~]|[#&]/g, '')),
    fc.constantFrom('lat', 'lng', 'limit', '%0d%0aX-Evil:1', '%', '%zz', '', '__proto__', 'a,b', '+'),
  );
  const pairs = fc.array(fc.tuple(name, fc.constantFrom('', '=', '=1')), { maxLength: 14 });
  await fc.assert(
    fc.asyncProperty(
      pairs,
      fc.constantFrom('', '&strict=true', '&strict=x', '&strict'),
      async (pairs, strict) => {
        const query = pairs.map(([name, value]) => name + value).join('&') + strict;
        for (const target of [
          `/devices?${query}`,
          `/throws?${query}`,
          `/rejects?${query}`,
          `/crowded?${query}`,
        ]) {
          const actual = await get(target);
          const names = readQuery(
            `/x?${query}`,
            target.startsWith('/devices') ? knownIn('/devices') : knownIn('/devices/nearest'),
          ).unknown;
          const isTwice = 'problem' in readQuery(`/x?${query}`, null);
          assert.equal(actual.headers[HEADER], names === null ? undefined : unknownParametersText(names));
          if (isTwice) assert.equal(actual.status, 400);
          assert.equal(actual.headers['x-evil'], undefined);
          assert.notEqual(target.startsWith('/devices') && actual.status, 500);
          const elements = String(actual.headers[HEADER] ?? 'none').split(',');
          assert.ok(elements.length <= 10);
          for (const element of elements) assert.match(element, ELEMENT);
        }
      },
    ),
    { numRuns: runs(25) },
  );
});

test('v2 says nothing of them, strict or not', async () => {
  const { status, headers } = await get('/devices?nonsense=1&strict=true', 'v2');
  assert.deepEqual([status, headers[HEADER]], [200, undefined]);
});

const v3Routes = describedRoutes().filter(({ versions }) => versions.includes('v3'));

describe('every route of v3', () => {
  const owner = ownerPod({ env: { ...NO_LIMITS, ROLES: 'api,ingest' } });

  for (const route of v3Routes) {
    const name = `${route.method} ${route.path}`;
    const path = route.path.replace(/[:*]imei/, '350000000000001').replace(/[:*]\w+/, '1');

    test(`${name} names what it does not know, and refuses it where it is strict`, async () => {
      const call = (version: string, query: string) =>
        bareRequest(owner.pod.api, `/api/${version}${path}?${query}`, {
          method: route.method === 'GET' ? 'HEAD' : route.method,
          headers: { 'X-API-Key': owner.key },
        });
      const loose = await call('v3', 'nonsense=1');
      assert.equal(loose.headers[HEADER], 'nonsense');
      assert.notEqual(loose.status, 500);
      const strict = await call('v3', 'strict=true&nonsense=1');
      assert.deepEqual([strict.status, strict.headers[HEADER]], [400, 'nonsense']);
      if (route.method === 'GET') {
        assert.equal((await call('v1', 'nonsense=1')).headers[HEADER], 'nonsense');
        assert.equal((await call('v1', 'strict=true&nonsense=1')).status, 400);
      }
      if (route.versions.includes('v2'))
        assert.equal((await call('v2', 'nonsense=1')).headers[HEADER], undefined);
    });

    test(`${name} knows what it is described with`, () => {
      assert.ok('describe' in route);
      const parameters = (route.describe.parameters ?? []).filter((each) => each.in === 'query');
      const query = ['strict=true', ...parameters.map(({ name }) => `${name}=1`)].join('&');
      assert.equal(readQuery(`/api/v3/x?${query}`, knownParameters('v3', route)).unknown, null);
    });
  }

  test('names them where its answer is streamed, too', async () => {
    const leaving = new AbortController();
    for (const path of ['stream?snapshot=false&', 'devices/changes?', 'history/export?format=csv&'])
      for (const [query, status] of [
        ['nonsense=1', 200],
        ['nonsense=1&strict=true', 400],
      ] as const) {
        const url = `${owner.pod.api}/api/v3/${path}${query}`;
        const answer = await openAnswer(url, { 'X-API-Key': owner.key }, leaving.signal);
        answer.on('error', () => undefined).resume();
        assert.deepEqual([answer.statusCode, answer.headers[HEADER]], [status, 'nonsense'], url);
      }
    leaving.abort();
  });

  test('has `strict` and the header in the description', () => {
    const { paths, components } = describedApi();
    assert.ok(components['parameters']?.['strict']);
    for (const route of v3Routes) {
      const path = `/api/v3${route.path.replace(/[:*](\w+)/g, '{$1}')}`;
      const operation = paths[path]?.[route.method.toLowerCase()] as {
        parameters: readonly { $ref?: string }[];
        responses: Readonly<Record<string, { headers?: object }>>;
      };
      assert.ok(
        operation.parameters.some(({ $ref }) => $ref === '#/components/parameters/strict'),
        path,
      );
      for (const status of Object.keys(operation.responses).filter((status) => /^20|400/.test(status)))
        assert.ok(
          'X-Unknown-Parameters' in (operation.responses[status]?.headers ?? {}),
          `${path} ${status}`,
        );
    }
  });
});

test('a call without the permission is refused with that, whatever its query', async () => {
  const { status, headers } = await bareRequest(side.url, '/api/v3/devices?strict=true&nonsense=1', {
    headers: { 'X-API-Key': keyOf('scopeless') },
  });
  assert.deepEqual([status, headers[HEADER]], [403, undefined]);
});
