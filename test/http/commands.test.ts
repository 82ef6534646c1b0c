import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql } from '../../src/store/sql.ts';
import { adminOf } from '../support/admin.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const VAN = '350000000000001';
const BUS = '350000000000002';
const CROWDED = '350000000000003';
const TYPES = [
  'position_request',
  'engine_stop',
  'engine_resume',
  'output_control',
  'reboot',
  'configuration',
  'custom',
];
/** All queued at the same instant. */
const CROWD = 105;

describe('the command queue', () => {
  let pod: Pod;
  let key: string;
  /** Of the van, in the order of their creation: the first is sent, the second canceled, the others pending. */
  const ids: number[] = [];

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    ({ key } = await admin.key('owner@example.com', { scopes: 'send_commands' }));
    for (const imei of [VAN, BUS, CROWDED]) await admin.device('owner@example.com', imei);
    for (const type of TYPES) {
      ids.push(Number((await admin.run('command:enqueue', '--imei', VAN, '--type', type))['id']));
    }
    await admin.run('command:sent', '--id', String(ids[0]));
    await admin.run('command:cancel', '--id', String(ids[1]));
    const sql = openSql(database.url, { maxConnections: 1, name: 'test' });
    await sql`
      insert into command (device_id, type, queued_at)
      select id, 'reboot', '2026-01-01' from device, generate_series(1, ${CROWD}) where imei = ${CROWDED}`;
    await sql.end();
    pod = await startPod(database.url);
  });

  after(() => pod.stop());

  for (const version of ['v2', 'v3']) {
    const get = (imei: string, query = ''): Promise<Reply> =>
      pod.get(`/api/${version}/devices/${imei}/commands${query}`, key);
    const listed = ({ body }: Reply): number[] => body.data.map((command: { id: number }) => command.id);

    describe(`${version} 200`, () => {
      test('an entry shows every documented field and no other; sent_at is null until it is sent', async () => {
        const { status, body } = await get(VAN, '?status=pending,sent,canceled');
        assert.equal(status, 200);
        assert.deepEqual(
          body.data.map((command: object) => Object.keys(command)),
          TYPES.map(() => ['id', 'type', 'status', 'queued_at', 'sent_at']),
        );
        assert.deepEqual(
          body.data.map(({ type, status }: { type: string; status: string }) => [type, status]).reverse(),
          TYPES.map((type, n) => [type, ['sent', 'canceled'][n] ?? 'pending']),
        );
        for (const command of body.data) {
          assert.equal(new Date(command.queued_at).toISOString(), command.queued_at);
          assert.equal(command.sent_at === null, command.status !== 'sent');
        }
        const sent = body.data.at(-1);
        assert.ok(Date.parse(sent.sent_at) >= Date.parse(sent.queued_at));
        assert.deepEqual(body.meta, { pagination: { limit: 50, offset: 0, count: TYPES.length } });
      });

      test('a device without commands has an empty queue', async () => {
        const { status, body } = await get(BUS);
        assert.deepEqual([status, body.data], [200, []]);
      });

      const filters: [query: string, places: number[]][] = [
        ['', [6, 5, 4, 3, 2, 0]],
        ['?status=', [6, 5, 4, 3, 2, 0]],
        ['?status=%20', [6, 5, 4, 3, 2, 0]],
        ['?status=pending', [6, 5, 4, 3, 2]],
        ['?status=sent', [0]],
        ['?status=canceled', [1]],
        ['?status=canceled,sent', [1, 0]],
        ['?status=sent,%20canceled', [1, 0]],
        ['?status=sent,sent', [0]],
        ['?status=sent%2Ccanceled', [1, 0]],
        ['?status=canceled,pending,sent', [6, 5, 4, 3, 2, 1, 0]],
        ['?offset=2', [6, 5, 4, 3, 2, 0]],
        ['?limit=2', [6, 5]],
      ];
      for (const [query, places] of filters) {
        test(`newest first with ${query || 'no filter'}`, async () => {
          assert.deepEqual(
            listed(await get(VAN, query)),
            places.map((place) => ids[place]),
          );
        });
      }

      for (const [query, limit] of [
        ['', 50],
        ['?limit=100', 100],
        ['?limit=101', 100],
        ['?limit=0', 1],
        ['?limit=-1', 1],
        ['?limit=3.9', 3],
        ['?limit=', 50],
        ['?limit=many', 50],
        [`?limit=${'9'.repeat(400)}`, 100],
      ] as const) {
        test(`${query.slice(0, 30) || 'no limit'} gives the newest ${limit}, of equal times those with the higher ids`, async () => {
          const reply = await get(CROWDED, query);
          assert.deepEqual(reply.body.meta.pagination, { limit, offset: 0, count: limit });
          const newest = (ids.at(-1) as number) + CROWD;
          assert.deepEqual(
            listed(reply),
            Array.from({ length: limit }, (_, n) => newest - n),
          );
        });
      }
    });

    describe(`${version} 400`, () => {
      for (const status of [
        'x',
        'Pending',
        'pending,x',
        'pending,',
        ',',
        'cancelled',
        'pending;sent',
        '%00',
        'all',
      ]) {
        test(`status=${status} is no subset of pending, sent, canceled`, async () => {
          const { status: answered, body } = await get(VAN, `?status=${status}`);
          assert.deepEqual([answered, body.error.code], [400, 'BAD_REQUEST']);
        });
      }
    });
  }
});
