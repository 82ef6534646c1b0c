import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parsePostgresUrl, parseReplicaUrl } from '../../src/postgres/postgresUrl.ts';

const read = (text: string) => {
  const parsed = parsePostgresUrl(text);
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.error.join('; '));
  return parsed.value;
};

describe('a URL of one host', () => {
  for (const text of [
    'postgres://u:w@db:5433/fleet?sslmode=verify-full',
    'postgresql://db/fleet?target_session_attrs=any',
    'postgres:///fleet?host=/run/postgresql',
    'postgres://u:a,b@db',
  ])
    test(`is left as it is, with any server: ${text}`, () => {
      const { hosts, target } = read(text);
      assert.deepEqual([hosts.map(({ url }) => url), target], [[text], null]);
    });

  test('may ask for a primary', () => {
    assert.equal(read('postgres://db/fleet?target_session_attrs=read-write').target, 'read-write');
  });
});

describe('a URL of several hosts', () => {
  test('is one for each of them, with the user, the database and the parameters', () => {
    const { hosts, target } = read('postgres://u:w@rd,x@a:5433,b,[::1]:5434/fleet?connect_timeout=1');
    assert.deepEqual(hosts, [
      { name: 'a:5433', url: 'postgres://u:w@rd,x@a:5433/fleet?connect_timeout=1' },
      { name: 'b:5432', url: 'postgres://u:w@rd,x@b/fleet?connect_timeout=1' },
      { name: '[::1]:5434', url: 'postgres://u:w@rd,x@[::1]:5434/fleet?connect_timeout=1' },
    ]);
    assert.equal(target, 'primary', 'since the service needs one');
  });

  test('names the files that it needs', () => {
    const { files } = read('postgres://a,b/fleet?sslmode=verify-full&sslrootcert=/etc/ca.pem&sslkey=k.pem');
    assert.deepEqual(files, [
      { parameter: 'sslrootcert', path: '/etc/ca.pem' },
      { parameter: 'sslkey', path: 'k.pem' },
    ]);
  });

  test('has all its errors told at once, and nothing of it repeated', () => {
    const hosts = Array.from({ length: 11 }, (_, n) => `h${n}`).join();
    const parsed = parsePostgresUrl(
      `postgres://u:hidden@,:1,b:port,${hosts}/fleet?host=x&target_session_attrs=standby`,
    );
    assert.deepEqual(parsed.ok ? [] : parsed.error, [
      'has a host (number 1) that is not of the form name:port',
      'has a host (number 2) that is not of the form name:port',
      'has a host (number 3) that is not of the form name:port',
      'must have at most 10 hosts',
      'must name several hosts before its path, not in the parameters host and port',
      'must have primary or read-write for target_session_attrs, since the service writes',
    ]);
  });
});

describe('the URL of a replica', () => {
  for (const [text, hosts] of [
    ['postgres://u:w@db:5433/fleet', 1],
    ['postgres://db/fleet?target_session_attrs=standby', 1],
    ['postgres://a,b:5433/fleet?target_session_attrs=prefer-standby', 2],
    ['postgres://a,b/fleet', 2],
  ] as const)
    test(`asks for a standby: ${text}`, () => {
      const parsed = parseReplicaUrl(text);
      assert.ok(parsed.ok);
      assert.deepEqual([parsed.value.hosts.length, parsed.value.target], [hosts, 'standby']);
    });

  for (const value of ['primary', 'read-write', 'any', 'toString', ''])
    test(`may not ask for another server, such as "${value}"`, () => {
      const parsed = parseReplicaUrl(`postgres://u:hidden@db/fleet?target_session_attrs=${value}`);
      assert.deepEqual(parsed.ok ? [] : parsed.error, [
        'must have standby or prefer-standby for target_session_attrs, since it is to be a replica',
      ]);
    });
});
