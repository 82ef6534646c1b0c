import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fixOf } from '../support/ingest/fixOf.ts';
import { crowdedBench, HERE } from '../support/ingest/ingestBench.ts';

const NOW_MS = Date.now();
const OWNER = 1;

describe('an account at its quota of stays', () => {
  test('is held to it by transactions that run side by side', async (t) => {
    const DEVICES = 60;
    const { side, imeis } = await crowdedBench(t, NOW_MS, { devices: DEVICES, areas: 10 });
    const { stays } = side.fleet;
    stays.setLimit(OWNER, 123);
    await Promise.all(
      imeis.map(async (imei, n) => {
        for (let turn = 0; turn < n % 4; turn++) await new Promise(setImmediate);
        await side.ingest.store([fixOf(imei, NOW_MS + n, HERE)]);
      }),
    );
    assert.equal(stays.ofAccount(OWNER), 123);
    const [row] = await side.sql<{ stored: number; refused: number; events: number }[]>`
      select (select count(*)::int from fleet_event) as events, sum(json_array_length(stays::json))::int as stored, count(stays_refused_until)::int as refused
      from device_state`;
    assert.deepEqual(row, { events: 123, stored: 123, refused: DEVICES - 12 });
  });

  test('has what was refused written down with the first and the last point of a time', async (t) => {
    const { side, imeis } = await crowdedBench(t, NOW_MS, { devices: 1, areas: 1 });
    const { stays } = side.fleet;
    const [imei = ''] = imeis;
    let sent = 0;
    const report = () => side.ingest.store([fixOf(imei, NOW_MS + ++sent, HERE)]);
    const refused = async () => {
      const [row] = await side.sql<{ from: Date | null; until: Date | null }[]>`
        select stays_refused_from as from, stays_refused_until as until from device_state s
        join device d on d.id = s.device_id where d.imei = ${imei}`;
      return [row?.from?.getTime(), row?.until?.getTime()];
    };
    stays.setLimit(OWNER, 0);
    assert.deepEqual(await report(), ['accepted']);
    assert.deepEqual(await report(), ['accepted']);
    assert.deepEqual(await refused(), [NOW_MS + 1, NOW_MS + 2]);
    stays.setLimit(OWNER, 1);
    assert.deepEqual(await report(), ['accepted']);
    assert.deepEqual(await refused(), [NOW_MS + 1, NOW_MS + 2]);
  });
});
