import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fleetDatabase } from '../runFleet.ts';

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
const ENDS = { 'command:sent': 'sent', 'command:cancel': 'canceled' } as const;

const database = fleetDatabase(
  'account:create --email a@x --name A',
  `device:create --email a@x --imei ${IMEI}`,
);

async function enqueue(type = 'reboot'): Promise<number> {
  const { json } = await database.fleet(`command:enqueue --imei ${IMEI} --type ${type}`);
  assert.deepEqual(json, { id: json.id, status: 'pending' });
  return json.id;
}

async function commandRow(id: number) {
  const [row] = await database.sql`
    select type, status, sent_at, sent_at between queued_at and clock_timestamp() as is_sent
    from command where id = ${id}`;
  return { ...row };
}

test('every documented type can be queued, and is pending', async () => {
  for (const type of TYPES)
    assert.deepEqual(await commandRow(await enqueue(type)), {
      type,
      status: 'pending',
      sent_at: null,
      is_sent: null,
    });
});

test('a pending command can be sent, which is when it was sent, or canceled; then it does not change', async () => {
  for (const [command, status] of Object.entries(ENDS)) {
    const id = await enqueue();
    assert.deepEqual((await database.fleet(`${command} --id ${id}`)).json, { id, status });
    const row = await commandRow(id);
    assert.deepEqual([row['status'], row['is_sent']], [status, status === 'sent' ? true : null]);
    for (const again of Object.keys(ENDS)) {
      const message = `${again}: command ${id} is ${status}; only a pending one can change\n`;
      await database.refuses(`${again} --id ${id}`, 1, message);
    }
    assert.deepEqual(await commandRow(id), row);
  }
});

test('of several that end a command at the same moment one succeeds', async () => {
  const id = await enqueue();
  const runs = await Promise.all(
    [...Object.keys(ENDS), ...Object.keys(ENDS)].map((command) => database.fleet(`${command} --id ${id}`)),
  );
  assert.deepEqual(runs.map(({ code }) => code).sort(), [0, 1, 1, 1]);
  assert.equal(runs.find(({ code }) => code === 0)?.json.status, (await commandRow(id))['status']);
});

test('an unknown device, command or type is refused', async () => {
  for (const [line, code, message] of [
    ['command:enqueue --imei 35000000000099 --type reboot', 1, /there is no device 35000000000099/],
    [
      `command:enqueue --imei ${IMEI} --type self_destruct`,
      2,
      /--type is not a command type; choose one of position_request, /,
    ],
    [`command:enqueue --imei ${IMEI}`, 2, /--type is missing/],
    ['command:sent --id 999999', 1, /there is no command 999999/],
    ['command:cancel --id 999999', 1, /there is no command 999999/],
    ['command:cancel', 2, /--id is missing/],
  ] as const)
    await database.refuses(line, code, message);
});
