import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { type FleetRun, runFleet } from '../runFleet.ts';

const IMEI = '350000000000017';
const TYPES = [
  'position_request',
  'engine_stop',
  'engine_resume',
  'output_control',
  'reboot',
  'configuration',
  'custom',
];

let url: string;
let sql: Sql;
before(async () => {
  url = (await createDatabase()).url;
  sql = openSql(url, { maxConnections: 2, name: 'test' });
  await fleet('account:create', '--email', 'a@x', '--name', 'A');
  await fleet('device:create', '--email', 'a@x', '--imei', IMEI);
});
after(() => sql.end());

const fleet = (...argv: string[]): Promise<FleetRun> => runFleet(url, argv);

async function enqueue(type = 'reboot'): Promise<number> {
  const { json } = await fleet('command:enqueue', '--imei', IMEI, '--type', type);
  return json.id;
}

test('every documented type can be queued, and is pending', async () => {
  for (const type of TYPES) {
    const { code, json } = await fleet('command:enqueue', '--imei', IMEI, '--type', type);
    assert.equal(code, 0);
    assert.deepEqual(json, { id: json.id, status: 'pending' });
    const [row] = await sql`select type, status, sent_at from command where id = ${json.id}`;
    assert.deepEqual({ ...row }, { type, status: 'pending', sent_at: null });
  }
});

test('a pending command can be sent, which is when it was sent, or canceled', async () => {
  const [first, second] = [await enqueue(), await enqueue()];
  assert.deepEqual((await fleet('command:sent', '--id', String(first))).json, { id: first, status: 'sent' });
  assert.deepEqual((await fleet('command:cancel', '--id', String(second))).json, {
    id: second,
    status: 'canceled',
  });
  const rows = await sql`
    select status, sent_at between queued_at and clock_timestamp() as sent from command
    where id in (${first}, ${second}) order by id`;
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [
      { status: 'sent', sent: true },
      { status: 'canceled', sent: null },
    ],
  );
});

test('a command that no longer waits does not change', async () => {
  for (const [first, status] of [
    ['command:sent', 'sent'],
    ['command:cancel', 'canceled'],
  ] as const) {
    const id = await enqueue();
    await fleet(first, '--id', String(id));
    const before = await sql`select * from command where id = ${id}`;
    for (const command of ['command:sent', 'command:cancel']) {
      const { code, stdout, stderr } = await fleet(command, '--id', String(id));
      assert.deepEqual([code, stdout], [1, '']);
      assert.equal(stderr, `${command}: command ${id} is ${status}; only a pending one can change\n`);
    }
    assert.deepEqual(await sql`select * from command where id = ${id}`, before);
  }
});

test('of several that end a command at the same moment one succeeds', async () => {
  const id = await enqueue();
  const runs = await Promise.all(
    ['command:sent', 'command:cancel', 'command:sent', 'command:cancel'].map((command) =>
      fleet(command, '--id', String(id)),
    ),
  );
  assert.deepEqual(runs.map(({ code }) => code).sort(), [0, 1, 1, 1]);
  const [row] = await sql<{ status: string }[]>`select status from command where id = ${id}`;
  assert.equal(runs.find(({ code }) => code === 0)?.json.status, row?.status);
});

test('an unknown device, command or type is refused', async () => {
  const cases: readonly [string[], number, RegExp][] = [
    [
      ['command:enqueue', '--imei', '35000000000099', '--type', 'reboot'],
      1,
      /there is no device 35000000000099/,
    ],
    [
      ['command:enqueue', '--imei', IMEI, '--type', 'self_destruct'],
      2,
      /--type is no command type; choose one of position_request, /,
    ],
    [['command:enqueue', '--imei', IMEI], 2, /--type is missing/],
    [['command:sent', '--id', '999999'], 1, /there is no command 999999/],
    [['command:cancel', '--id', '999999'], 1, /there is no command 999999/],
    [['command:cancel'], 2, /--id is missing/],
  ];
  for (const [argv, expected, message] of cases) {
    const { code, stdout, stderr } = await fleet(...argv);
    assert.deepEqual([code, stdout], [expected, ''], argv.join(' '));
    assert.match(stderr, message);
  }
});
