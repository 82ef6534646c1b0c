import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { SCOPES } from '../../../src/access/scopes.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { watchFeed } from '../feed.ts';
import { type FleetRun, runFleet } from '../runFleet.ts';

let url: string;
let sql: Sql;
let worldId: number;
before(async () => {
  url = (await createDatabase()).url;
  sql = openSql(url, { maxConnections: 2, name: 'test' });
  await fleet('account:create', '--email', 'a@x', '--name', 'A');
  const [row] = await sql<{ world_id: number }[]>`select world_id from account`;
  worldId = row?.world_id ?? 0;
});
after(() => sql.end());

const fleet = (...argv: string[]): Promise<FleetRun> => runFleet(url, argv);

describe('key:create', () => {
  test('shows the key, stores only its fingerprint and notifies the pods', async () => {
    const { result, rows, raised } = await watchFeed(sql, () =>
      fleet(
        'key:create',
        '--email',
        'A@x',
        '--scopes',
        'read_events, read_devices,read_events',
        '--name',
        'Shop',
      ),
    );
    const { id, key, prefix, scopes } = result.json;
    assert.match(key, /^fk_[A-Za-z0-9]{43}$/);
    assert.deepEqual(Object.keys(result.json), ['id', 'key', 'prefix', 'scopes']);
    assert.equal(prefix, key.slice(0, 6));
    assert.deepEqual(scopes, ['read_devices', 'read_events']);
    const [row] = await sql`select * from api_key where id = ${id}`;
    assert.deepEqual(row?.['fingerprint'], createHash('sha256').update(key).digest());
    assert.deepEqual(
      [
        row?.['name'],
        row?.['prefix'],
        row?.['scopes'],
        row?.['allowlist'],
        row?.['revoked_at'],
        row?.['last_used_at'],
      ],
      ['Shop', prefix, scopes, [], null, null],
    );
    assert.deepEqual(rows, [{ kind: 'key', worldId, entityId: id }]);
    assert.deepEqual(raised, [worldId]);
  });

  test('grants all nine scopes with "all"', async () => {
    const { json } = await fleet('key:create', '--email', 'a@x', '--scopes', 'all');
    assert.deepEqual(json.scopes, [...SCOPES]);
    assert.equal(json.scopes.length, 9);
  });

  test('keeps the allowed addresses', async () => {
    const { json } = await fleet(
      'key:create',
      '--email',
      'a@x',
      '--scopes',
      'all',
      '--allow',
      '10.0.0.0/8, 2001:db8::1',
    );
    const [row] = await sql`select allowlist from api_key where id = ${json.id}`;
    assert.deepEqual(row?.['allowlist'], ['10.0.0.0/8', '2001:db8::1']);
  });

  test('refuses an unknown account', async () => {
    const { code, stdout, stderr } = await fleet('key:create', '--email', 'nobody@x', '--scopes', 'all');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /there is no account nobody@x; add it with account:create/);
  });

  const addresses = Array.from({ length: 51 }, (_, index) => `10.0.0.${index}`).join(',');
  const misuse: readonly [string[], RegExp][] = [
    [['--email', 'a@x'], /--scopes is missing/],
    [
      ['--email', 'a@x', '--scopes', 'read_devices,fly'],
      /--scopes names no scope: fly; it may be all, or some of read_devices,/,
    ],
    [['--email', 'a@x', '--scopes', 'all,read_devices'], /--scopes names no scope: all;/],
    [['--email', 'a@x', '--scopes', ','], /--scopes is empty/],
    [
      ['--email', 'a@x', '--scopes', 'all', '--allow', '10.0.0.1,intranet'],
      /--allow has "intranet", which is no IPv4 address/,
    ],
    [['--email', 'a@x', '--scopes', 'all', '--allow', '2001:db8::/32'], /--allow has "2001:db8::\/32"/],
    [['--email', 'a@x', '--scopes', 'all', '--allow', ''], /--allow is empty; leave it out/],
    [['--email', 'a@x', '--scopes', 'all', '--allow', addresses], /--allow has 51 entries, 50 at most/],
  ];
  for (const [argv, message] of misuse) {
    test(`is not understood with ${argv.slice(2).join(' ').slice(0, 60)}`, async () => {
      const { code, stdout, stderr } = await fleet('key:create', ...argv);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    });
  }
});

describe('key:revoke', () => {
  test('ends a key and notifies the pods; doing it again keeps the time', async () => {
    const { json } = await fleet('key:create', '--email', 'a@x', '--scopes', 'all');
    const first = await watchFeed(sql, () => fleet('key:revoke', '--id', String(json.id)));
    assert.equal(first.result.json.id, json.id);
    const [row] = await sql<{ revoked_at: Date }[]>`select revoked_at from api_key where id = ${json.id}`;
    assert.equal(first.result.json.revoked_at, row?.revoked_at.toISOString());
    assert.deepEqual(first.rows, [{ kind: 'key', worldId, entityId: json.id }]);
    assert.deepEqual(first.raised, [worldId]);
    const again = await watchFeed(sql, () => fleet('key:revoke', '--id', String(json.id)));
    assert.deepEqual(again.result.json, first.result.json);
    assert.deepEqual(again.raised, [worldId]);
  });

  test('refuses an unknown key', async () => {
    const { code, stdout, stderr } = await fleet('key:revoke', '--id', '9007199254740991');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /there is no key 9007199254740991/);
  });

  for (const id of ['0', '-1', '1.5', 'x', '9007199254740992', '']) {
    test(`does not understand --id=${id}`, async () => {
      const { code, stderr } = await fleet('key:revoke', `--id=${id}`);
      assert.equal(code, 2);
      assert.match(stderr, /--id must be a whole number from 1 to 9007199254740991/);
    });
  }
});
