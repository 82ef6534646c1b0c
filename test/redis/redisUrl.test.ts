import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseRedisUrl } from '../../src/redis/redisUrl.ts';

const read = (text: string) => {
  const parsed = parseRedisUrl(text);
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.error.join('; '));
  return parsed.value;
};
const errorsOf = (text: string) => {
  const parsed = parseRedisUrl(text);
  return parsed.ok ? [] : parsed.error;
};

describe('a URL of one Redis', () => {
  test('goes to the client as it is', () => {
    const text = 'redis://u:hidden@cache:6380/1?family=6';
    assert.deepEqual(read(text), { options: {}, url: text, nodes: [], name: 'cache:6380', files: [] });
  });

  test('with TLS may name certificates', () => {
    const { files, options } = read('rediss://cache?cacert=/etc/ca.pem&key=k.pem');
    assert.deepEqual(files, [
      { parameter: 'cacert', path: '/etc/ca.pem' },
      { parameter: 'key', path: 'k.pem' },
    ]);
    assert.deepEqual(options, { tls: {} });
    assert.deepEqual(errorsOf('redis://cache?cert=c.pem'), [
      'must start with rediss where it has the parameters cacert, cert, key',
    ]);
  });
});

describe('a URL of sentinels', () => {
  test('names a master and where to ask for it', () => {
    const { options, name, url } = read(
      'redis+sentinel://my-fleet@a,[::1]:26380/2?username=u&password=p%26w&sentinel_password=s',
    );
    assert.deepEqual([name, url], ['my-fleet@a,[::1]:26380', null]);
    assert.deepEqual(options, {
      name: 'my-fleet',
      sentinels: [
        { host: 'a', port: 26_379 },
        { host: '::1', port: 26_380 },
      ],
      db: 2,
      username: 'u',
      password: 'p&w',
      sentinelUsername: undefined,
      sentinelPassword: 's',
    });
  });

  test('with TLS encrypts the way to the sentinels as well', () => {
    const { options } = read('rediss+sentinel://fleet@a?cacert=ca.pem');
    assert.deepEqual([options.tls, options.sentinelTLS, options.enableTLSForSentinelMode], [{}, {}, true]);
  });

  test('has all its errors told at once, and nothing of it repeated', () => {
    assert.deepEqual(errorsOf('redis+sentinel://u:hidden@a:x,/five?pasword=hidden&cert=c'), [
      'has a sentinel (number 1) that is not of the form name:port',
      'has a sentinel (number 2) that is not of the form name:port',
      'must name the master before its @, and have a password in the parameter password',
      'must have the number of a database after its /, or nothing',
      'must have no parameters but username, password, sentinel_username, sentinel_password, cacert, cert, key',
      'must start with rediss where it has the parameters cacert, cert, key',
    ]);
    assert.equal(errorsOf('redis+sentinel://a:26379').length, 1, 'a name is needed');
    assert.equal(errorsOf(`redis+sentinel://f@${Array(11).fill('a').join()}`).length, 1);
  });
});

describe('a URL of a cluster', () => {
  test('names some of its nodes', () => {
    assert.deepEqual(read('redis+cluster://a,[::1]:7000?username=u&password=p%26w'), {
      options: { username: 'u', password: 'p&w' },
      url: null,
      nodes: [
        { host: 'a', port: 6379 },
        { host: '::1', port: 7000 },
      ],
      name: 'a,[::1]:7000',
      files: [],
    });
    assert.deepEqual(read('rediss+cluster://a/?cacert=ca.pem').options.tls, {});
  });

  test('has all its errors told at once, and nothing of it repeated', () => {
    assert.deepEqual(errorsOf('redis+cluster://u:hidden@a:x,/5?sentinel_password=hidden&cert=c'), [
      'has a node (number 1) that is not of the form name:port',
      'has a node (number 2) that is not of the form name:port',
      'must have a user and a password in the parameters username and password',
      'must have nothing after its /, since a cluster has one database',
      'must have no parameters but username, password, cacert, cert, key',
      'must start with rediss where it has the parameters cacert, cert, key',
    ]);
    assert.deepEqual(errorsOf(`redis+cluster://${Array(11).fill('a').join()}`), [
      'must have at most 10 nodes',
    ]);
  });
});
