import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { readBothVersions } from '../support/http/readBothVersions.ts';
import { ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';

const VAN = '350000000000001';
const BUS = '350000000000002';
const WITH_MANY = '350000000000003';
const TYPES = [
  ...['position_request', 'engine_stop', 'engine_resume', 'output_control', 'reboot'],
  ...['configuration', 'custom'],
];
/** All queued at the same instant. */
const MANY = 105;

interface Command {
  readonly id: number;
  readonly type: string;
  readonly status: string;
  readonly queued_at: string;
  readonly sent_at: string | null;
}

describe('GET /devices/{imei}/commands', () => {
  /** Of the van, in the order of their creation: the first is sent, the second canceled, the others pending. */
  const ids: number[] = [];

  const owner = ownerPod({
    scopes: 'send_commands',
    devices: [VAN, BUS, WITH_MANY].map((imei) => ({ imei })),
  });
  before(async () => {
    const { admin, sql } = owner;
    for (const type of TYPES) {
      ids.push(Number((await admin.run('command:enqueue', '--imei', VAN, '--type', type))['id']));
    }
    await admin.run('command:sent', '--id', String(ids[0]));
    await admin.run('command:cancel', '--id', String(ids[1]));
    await sql`
      insert into command (device_id, type, queued_at)
      select id, 'reboot', '2026-01-01' from device, generate_series(1, ${MANY}) where imei = ${WITH_MANY}`;
  });

  const get = (imei: string, query = ''): Promise<Reply> =>
    readBothVersions(owner.pod, `/devices/${imei}/commands${query}`, owner.key);
  const idsOf = ({ body }: Reply): number[] => body.data.map(({ id }: Command) => id);

  test('shows every documented field of an entry, and sent_at as null until it is sent', async () => {
    const { body } = await get(VAN, '?status=pending,sent,canceled');
    assert.deepEqual(body.meta, { pagination: { limit: 50, offset: 0, count: TYPES.length } });
    for (const [n, command] of (body.data as Command[]).toReversed().entries()) {
      const { queued_at, sent_at } = command;
      const status = ['sent', 'canceled'][n] ?? 'pending';
      assert.deepEqual(command, { id: ids[n], type: TYPES[n], status, queued_at, sent_at });
      assert.equal(new Date(queued_at).toISOString(), queued_at);
      if (status === 'sent') assert.ok(Date.parse(sent_at ?? '') >= Date.parse(queued_at));
      else assert.equal(sent_at, null);
    }
  });

  test('is empty for a device without commands', async () => {
    const { status, body } = await get(BUS);
    assert.deepEqual([status, body.data], [200, []]);
  });

  for (const [query, places] of [
    ['', [6, 5, 4, 3, 2, 0]],
    ['?status=%20', [6, 5, 4, 3, 2, 0]],
    ['?status=pending', [6, 5, 4, 3, 2]],
    ['?status=sent', [0]],
    ['?status=sent,%20canceled', [1, 0]],
    ['?status=sent%2Csent', [0]],
    ['?offset=2', [6, 5, 4, 3, 2, 0]],
    ['?limit=2', [6, 5]],
  ] as const) {
    test(`lists ${places.length} commands, newest first, ${query === '' ? 'by default' : `for ${query}`}`, async () => {
      assert.deepEqual(
        idsOf(await get(VAN, query)),
        places.map((place) => ids[place]),
      );
    });
  }

  test('lists the newest 100 at most, of equal times those with the higher ids', async () => {
    const reply = await get(WITH_MANY, '?limit=101');
    assert.deepEqual(reply.body.meta.pagination, { limit: 100, offset: 0, count: 100 });
    const newest = (ids.at(-1) as number) + MANY;
    assert.deepEqual(
      idsOf(reply),
      Array.from({ length: 100 }, (_, n) => newest - n),
    );
  });

  test('refuses with 400 a status that is no subset of pending, sent and canceled', async () => {
    for (const status of ['x', 'Pending', 'pending,x', 'pending,', ',', 'pending;sent', '%00', 'all']) {
      const { status: answered, body } = await get(VAN, `?status=${status}`);
      assert.deepEqual([answered, body.error.code], [400, 'BAD_REQUEST'], status);
    }
  });
});
