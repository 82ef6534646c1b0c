import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { completeDraft, parseDraft } from '../../src/areas/areaDraft.ts';
import { toShape } from '../../src/areas/shape.ts';
import { invariant } from '../../src/lib/errors.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { type IngestSide, ingestBench } from '../support/ingest/ingestBench.ts';
import { adminOf } from '../support/postgres/admin.ts';

const NOW_MS = Date.now();
const HERE = { lat: 41.9, lng: 12.5 };
const AWAY = { lat: 10, lng: 10 };
const [OWNER, VICTIM] = [1, 2];
const VICTIMS_IMEI = '350000000009999';

/** Circles around one place, of an account with so many devices and of another with one. */
async function startSetup(t: TestContext, { devices = 1, areas = 0 }) {
  const { imeis, sides, databaseUrl } = await ingestBench(t, { devices });
  const [side] = sides as [IngestSide];
  const admin = adminOf(databaseUrl);
  await admin.account('victim@example.com');
  await admin.device('victim@example.com', VICTIMS_IMEI);
  await side.ingest.store([...imeis, VICTIMS_IMEI].map((imei) => fixOf(imei, NOW_MS - 1_000, AWAY)));
  const draft = parseDraft({ name: 'Yard', type: 'circle', center: HERE, radius_m: 500 });
  invariant(draft.ok, 'a circle is valid');
  const complete = completeDraft(draft.value);
  invariant(complete.ok, 'it is complete');
  const { definition, measures } = complete.value;
  const shape = toShape(definition.geometry);
  const put = (id: number, accountId: number, imei: string): void => {
    const worldId = side.fleet.anyDevice(imei)?.fields.worldId ?? 0;
    side.memory.areas.put({
      ...{ id, worldId, accountId, definition, measures, shape },
      createdAtMs: 0,
      revision: 1,
    });
  };
  for (let id = 1; id <= areas; id++) put(id, OWNER, imeis[0] ?? '');
  put(1_000_000, VICTIM, VICTIMS_IMEI);
  const { stays } = side.fleet;
  let sent = 0;
  const report = async (imei: string, place: typeof HERE) => {
    assert.deepEqual(await side.ingest.store([fixOf(imei, NOW_MS + ++sent, place)]), ['accepted']);
  };
  /** The areas of the recorded events since the last call. */
  let seen = 0;
  const events = async (): Promise<string[]> => {
    const rows = await side.sql<{ id: number; event: string }[]>`
      select id, direction || ' ' || area_id as event from fleet_event where id > ${seen} order by id`;
    seen = rows.at(-1)?.id ?? seen;
    return rows.map(({ event }) => event);
  };
  return { side, imeis, stays, report, events };
}

describe('an account at its quota of stays', () => {
  test('begins no stay beyond it, is charged for no other account, and goes on when there is room', async (t) => {
    const { imeis, stays, report, events } = await startSetup(t, { devices: 2, areas: 3 });
    const [first = '', second = ''] = imeis;
    stays.setLimit(OWNER, 4);
    await report(first, HERE);
    await report(second, HERE);
    assert.deepEqual(await events(), ['entry 1', 'entry 2', 'entry 3', 'entry 1']);
    assert.equal(stays.ofAccount(OWNER), 4);

    await report(VICTIMS_IMEI, HERE);
    assert.deepEqual(await events(), ['entry 1000000'], 'of the account beside it');
    assert.equal(stays.ofAccount(VICTIM), 1);

    await report(second, HERE);
    assert.deepEqual(await events(), []);
    await report(first, AWAY);
    assert.deepEqual(await events(), ['exit 1', 'exit 2', 'exit 3']);
    await report(second, HERE);
    assert.deepEqual(await events(), ['entry 2', 'entry 3']);
    await report(second, AWAY);
    assert.deepEqual(await events(), ['exit 1', 'exit 2', 'exit 3']);
    assert.deepEqual([stays.ofAccount(OWNER), stays.ofAccount(VICTIM)], [0, 1]);
  });

  test('is held to it by transactions that run side by side', async (t) => {
    const DEVICES = 60;
    const { side, imeis, stays, events } = await startSetup(t, { devices: DEVICES, areas: 10 });
    stays.setLimit(OWNER, 123);
    await Promise.all(
      imeis.map(async (imei, n) => {
        for (let turn = 0; turn < n % 4; turn++) await new Promise(setImmediate);
        await side.ingest.store([fixOf(imei, NOW_MS + n, HERE)]);
      }),
    );
    assert.equal(stays.ofAccount(OWNER), 123);
    assert.equal((await events()).length, 123);
    const [row] = await side.sql<{ stored: number; refused: number }[]>`
      select sum(json_array_length(stays::json))::int as stored, count(stays_refused_until)::int as refused
      from device_state`;
    assert.deepEqual(row, { stored: 123, refused: DEVICES - 12 });
  });

  test('has what was refused written down with the first and the last point of a time', async (t) => {
    const { side, imeis, stays, report } = await startSetup(t, { areas: 1 });
    const [imei = ''] = imeis;
    const refused = async () => {
      const [row] = await side.sql<{ from: Date | null; until: Date | null }[]>`
        select stays_refused_from as from, stays_refused_until as until from device_state s
        join device d on d.id = s.device_id where d.imei = ${imei}`;
      return [row?.from?.getTime(), row?.until?.getTime()];
    };
    stays.setLimit(OWNER, 0);
    await report(imei, HERE);
    await report(imei, HERE);
    assert.deepEqual(await refused(), [NOW_MS + 1, NOW_MS + 2]);
    stays.setLimit(OWNER, 1);
    await report(imei, HERE);
    assert.deepEqual(await refused(), [NOW_MS + 1, NOW_MS + 2]);
  });
});
