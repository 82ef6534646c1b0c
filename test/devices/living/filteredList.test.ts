import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deviceRoutes } from '../../../src/devices/devices.routes.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { BulkCalls } from '../../../src/http/bulkCalls.ts';
import { AtOnce, WorkTurns } from '../../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf } from '../../support/devices.ts';
import { anyFilter, filledFleet, NOW_MS, passes, queryOf } from '../../support/filteredFleet.ts';
import { RouteCalls, readPieces } from '../../support/http/routeCalls.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';

const WORLDS = [1, 2, 3];
const SEEN = [1, 2];
const DEVICES = 1_500;

function listOf(fleet: Fleet, worldIds: readonly number[] = SEEN, turns = new WorkTurns<string | number>(3)) {
  const routes = deviceRoutes({ fleet, bulkCalls: new BulkCalls(turns), atOnce: new AtOnce(turns) });
  const calls = new RouteCalls(routes, {
    worldIds: [...worldIds],
    accountId: worldIds[0] ?? 1,
    nowMs: NOW_MS,
  });
  return async (asked: object) => {
    const answer = await calls.get('/devices', queryOf(asked));
    const text = Buffer.concat(await readPieces(answer)).toString();
    return { status: answer.status, text, body: JSON.parse(text) };
  };
}

describe('GET /devices with filters', () => {
  test('lists and counts exactly those that pass, page by page, as a walk over all devices finds them', async () => {
    for (let seed = 1; seed <= runs(1); seed++) {
      const random = seededRandom(seed);
      const fleet = filledFleet(random, DEVICES, WORLDS);
      const list = listOf(fleet);
      const all = fleet.page(SEEN, 0, DEVICES);
      for (let n = 0; n < 25; n++) {
        const asked = random() < 0.3 ? { ...anyFilter(random), q: 'Van' } : anyFilter(random);
        const hits = all.filter((device) => passes(device, asked)).map(({ imei }) => imei);
        const [limit, offset] = [1 + Math.floor(random() * 60), Math.floor(random() * 90)];
        const { status, body } = await list({ ...asked, limit, offset });
        assert.equal(status, 200);
        const imeis = body.data.map(({ imei }: { imei: string }) => imei);
        assert.deepEqual(imeis, hits.slice(offset, offset + limit), `seed ${seed}, ${queryOf(asked)}`);
        const pagination = { limit, offset, count: imeis.length };
        assert.deepEqual(body.meta, { pagination, total: hits.length });
      }
    }
  });

  test('shows of a device what the list without filters shows', async () => {
    const list = listOf(filledFleet(seededRandom(9), 150, [1]));
    const all = new Map(
      (await list({ limit: 200 })).body.data.map((each: { imei: string }) => [each.imei, each]),
    );
    const { body } = await list({ status: 'moving,parked,offline,unknown', limit: 200 });
    assert.equal(body.meta.total, 150);
    for (const device of body.data) assert.deepEqual(device, all.get(device.imei));
  });

  test('has no total without a filter, also where every filter is blank', async () => {
    const list = listOf(filledFleet(seededRandom(9), 10, [1]));
    for (const asked of [{}, { status: ' ', group: '', max_age_seconds: ' ', q: '' }])
      assert.deepEqual((await list(asked)).body.meta, { pagination: { limit: 50, offset: 0, count: 10 } });
  });

  test('finds names and plates by any part of them in either case, and IMEIs by their beginning', async () => {
    const fleet = new Fleet();
    const put = (id: number, name: string | null, plate: string | null) =>
      fleet.putDevice(fieldsOf({ id, imei: imeiOf(id), name, plate }));
    put(1, 'Van 12', 'GA 731 KL');
    put(2, 'ΟΔΟΣ "7"', null);
    put(3, null, 'va"N\\');
    put(4, '\ud800 Ä', null);
    const list = listOf(fleet);
    for (const [q, ...ids] of [
      ['vAN', 1],
      ['n 1', 1],
      ['a 7', 1],
      ['N\\', 3],
      ['a"n', 3],
      ['οδος', 2],
      ['Σ', 2],
      ['"', 2, 3],
      ['ä', 4],
      ['3500', 1, 2, 3, 4],
      [imeiOf(3), 3],
      ['50000', ...[]],
      [`${imeiOf(1)}"Van`, ...[]],
      ['null', ...[]],
      ['plate', ...[]],
    ] as [string, ...number[]][]) {
      const { body } = await list({ q });
      assert.deepEqual(
        body.data.map(({ imei }: { imei: string }) => imei),
        ids.map(imeiOf),
        q,
      );
    }
  });

  test('refuses what is no filter with 400, and says which parameter is wrong', async () => {
    const list = listOf(new Fleet());
    const wrong: Record<string, string[]> = {
      status: ['driving', 'moving,', ',', 'Moving', 'moving;parked', '__proto__'],
      group: [',', 'a,,b', 'a, ', Array.from({ length: 21 }, (_, n) => `g${n}`).join(',')],
      max_age_seconds: ['0', '-1', '31536001', 'abc', '1e3', '0.9', 'Infinity', '9'.repeat(400)],
      q: ['x'.repeat(101)],
    };
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values) {
        const { status, body } = await list({ [name]: value });
        assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], `${name}=${value}`);
        assert.match(body.error.message, new RegExp(`^${name} must`));
      }
    }
    const right: Record<string, string[]> = {
      status: ['moving', 'moving, parked', 'unknown,unknown'],
      group: ['a', ' a , b', Array.from({ length: 20 }, (_, n) => `g${n}`).join(',')],
      max_age_seconds: ['1', '1.9', '31536000', '+7'],
      q: ['x', '🚚'.repeat(100)],
    };
    for (const [name, values] of Object.entries(right))
      for (const value of values)
        assert.equal((await list({ [name]: value })).status, 200, `${name}=${value}`);
  });
});

test('another account is answered while one lists a large fleet by filters', async () => {
  const fleet = new Fleet();
  for (let id = 1; id <= 15_000; id++)
    fleet.putDevice(fieldsOf({ id, worldId: id === 1 ? 2 : 1, name: `Van ${id}` }));
  const turns = new WorkTurns<string | number>(3);
  let answered = 0;
  const attack = Array.from({ length: 12 }, () =>
    listOf(fleet, [1], turns)({ q: 'no such' }).then(() => answered++),
  );
  const { body } = await listOf(fleet, [2], turns)({ q: 'van' });
  assert.equal(body.meta.total, 1);
  assert.ok(answered < 12, 'the small fleet does not wait for the large one');
  await Promise.all(attack);
});
