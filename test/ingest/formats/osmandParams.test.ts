import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readOsmandParams, readTokenParameter } from '../../../src/ingest/formats/parseOsmand.ts';

describe('parameters of /osmand', () => {
  test('are decoded; what is not read is left out, any number of times', () => {
    const params = readOsmandParams('id=1&cell=a&driverUniqueId=CARD+7&cell=b&wifi=c&wifi=c&__proto__=x', '');
    assert.deepEqual(params, { id: '1', driverUniqueId: 'CARD 7' });
  });

  test('of the form go before those of the query', () => {
    assert.deepEqual(readOsmandParams('id=1&lat=2', 'lat=3&lon=4'), { id: '1', lat: '3', lon: '4' });
  });

  test('that are read stand there once', () => {
    for (const name of ['id', 'deviceid', 'lat', 'lon', 'location', 'timestamp', 'speed', 'alarm', 'valid']) {
      assert.equal(readOsmandParams(`${name}=1&x=1&${name}=1`, ''), 'given_twice');
      assert.equal(readOsmandParams('', `${name}&x=1&${name}=`), 'given_twice');
    }
  });

  test('are 256 at most, in the query as in the form', () => {
    const many = (count: number) => Array(count).fill('x=1').join('&');
    assert.deepEqual(readOsmandParams(many(256), many(256)), {});
    assert.equal(readOsmandParams(many(257), ''), 'too_many');
    assert.equal(readOsmandParams('', many(257)), 'too_many');
  });
});

test('the token is that of the form, else of the query; twice is none, and so is one among too many', () => {
  const cases: [query: string, form: string, token: string | undefined][] = [
    ['', '', undefined],
    ['token=a', '', 'a'],
    ['', 'token=a', 'a'],
    ['token=a', 'token=b', 'b'],
    ['token=a', 'token=b&token=b', undefined],
    ['token=a&token=a', '', undefined],
    [`token=a${'&x'.repeat(300)}`, '', undefined],
    ['token=a%20b+c', '', 'a b c'],
  ];
  for (const [query, form, token] of cases) assert.equal(readTokenParameter(query, form), token);
});
