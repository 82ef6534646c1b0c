import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NearDevice } from '../../../src/devices/device.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { PositionIndex } from '../../../src/devices/index/positionIndex.ts';
import { type DeviceFilter, readFilter } from '../../../src/devices/living/deviceFilter.ts';
import { nearestRoute } from '../../../src/devices/nearest.routes.ts';
import { distanceM } from '../../../src/geo/wgs84.ts';
import { AtOnce, inOneGo, WorkTurns } from '../../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, positionAt } from '../../support/devices.ts';
import {
  type Asked,
  anyFilter,
  anyPlace,
  changeDevice,
  filledFleet,
  NOW_MS,
  oneOf,
  passes,
  queryOf,
} from '../../support/filteredFleet.ts';
import { RouteCalls } from '../../support/http/routeCalls.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { SlotColumns } from '../../support/slotColumns.ts';
import { runs } from '../../support/torture.ts';

const WORLDS = [1, 2, 3];
const VIEWS = [[1], [1, 2], [3, 2], [9], [9, 1]];
const DEVICES = 1_800;
const MINUTE_MS = 60_000;

function filterOf(asked: Asked): DeviceFilter {
  const filter = readFilter(asked as Record<string, string>);
  assert.ok(filter.ok && filter.value !== null);
  return filter.value;
}

const question = (lat: number, lng: number, limit: number, maxM: number) => ({ lat, lng, limit, maxM });

/** What a search has to answer, worked out from the list of all devices. */
function expected(
  fleet: Fleet,
  view: readonly number[],
  { lat, lng, limit, maxM }: ReturnType<typeof question>,
  asked: Asked,
  nowMs: number,
): [string, number][] {
  return fleet
    .page(view, 0, Number.MAX_SAFE_INTEGER)
    .filter((device) => passes(device, asked, nowMs))
    .flatMap(({ imei, position }): [string, number][] =>
      position === null ? [] : [[imei, distanceM(lat, lng, position.lat, position.lng)]],
    )
    .filter(([, m]) => m <= maxM)
    .sort(([a, aM], [b, bM]) => aM - bM || (a < b ? -1 : 1))
    .slice(0, limit);
}

const summary = (found: readonly NearDevice[]): [string, number][] =>
  found.map(({ device, distanceM }) => [device.imei, distanceM]);

describe('nearest with filters', () => {
  test('agrees with brute force while devices change, with an index of those that pass and without', () => {
    let made = 0;
    for (let seed = 1; seed <= runs(1); seed++) {
      const random = seededRandom(seed);
      const fleet = filledFleet(random, DEVICES, WORLDS);
      const filters = Array.from({ length: 6 }, () => anyFilter(random));
      // Rare ones, for which it pays off to make an index at once.
      filters.push({ group: 'rare' }, { status: 'offline', group: 'rare' }, { max_age_seconds: '1' });
      let nowMs = NOW_MS;
      for (let n = 0; n < 300; n++) {
        for (let change = 0; change < 3; change++)
          changeDevice(fleet, random, 1 + Math.floor(random() * (DEVICES + 20)), WORLDS);
        if (random() < 0.02) nowMs += MINUTE_MS;
        const asked = oneOf(random, filters);
        const filter = filterOf(asked);
        const view = oneOf(random, VIEWS);
        const { lat, lng } = anyPlace(random);
        const ask = question(lat, lng, oneOf(random, [1, 3, 50]), oneOf(random, [Infinity, 40_000, 4e6]));
        const found =
          fleet.living.near(view, ask, filter, nowMs) ??
          inOneGo(fleet.living.nearInSteps(view, ask, filter, nowMs));
        const label = `seed ${seed}, question ${n}, ${queryOf(asked)}, worlds ${view}`;
        assert.deepEqual(summary(found), expected(fleet, view, ask, asked, nowMs), label);
        const due = fleet.living.due(view, filter, nowMs);
        if (due === null) continue;
        made++;
        for (let step = due.next(); step.done !== true; step = due.next())
          changeDevice(fleet, random, 1 + Math.floor(random() * DEVICES), WORLDS);
      }
    }
    assert.ok(made > 2, `${made} indexes were made`);
  });

  test('agrees with brute force in steps, as of the first one, even if devices change before the last', () => {
    for (let seed = 1; seed <= runs(1); seed++) {
      const random = seededRandom(100 + seed);
      const fleet = filledFleet(random, 4_000, WORLDS);
      for (let n = 0; n < 8; n++) {
        const asked = anyFilter(random);
        const view = oneOf(random, VIEWS);
        const { lat, lng } = anyPlace(random);
        const ask = question(lat, lng, oneOf(random, [1, 50]), oneOf(random, [Infinity, 100_000]));
        const before = expected(fleet, view, ask, asked, NOW_MS);
        const steps = fleet.living.nearInSteps(view, ask, filterOf(asked), NOW_MS);
        for (;;) {
          const next = steps.next();
          if (next.done === true) {
            assert.deepEqual(summary(next.value), before, `seed ${seed}, ${queryOf(asked)}, worlds ${view}`);
            break;
          }
          for (let change = 0; change < 100; change++)
            changeDevice(fleet, random, 1 + Math.floor(random() * 4_020), WORLDS);
        }
      }
    }
  });

  test('finds nobody in an empty fleet, and of those without a position', () => {
    const fleet = new Fleet();
    const ask = question(0, 0, 50, Infinity);
    assert.deepEqual(fleet.living.near([1], ask, filterOf({ status: 'moving' }), NOW_MS), []);
    fleet.putDevice(fieldsOf({ id: 1, groups: ['north'] }));
    assert.deepEqual(fleet.living.near([1], ask, filterOf({ group: 'north' }), NOW_MS), []);
    assert.deepEqual(fleet.living.near([1], ask, filterOf({ status: 'unknown' }), NOW_MS), []);
  });
});

describe('a search that turns down thousands', () => {
  const RARE = 12_000;
  const SPOT: [number, number] = [41, 12];
  const place = (n: number): [number, number] => [41 + (n % 173) / 100, 12 + (n % 211) / 100];

  /** All on one spot, or spread; only the last is in the group. */
  function fleetOf(isSpot: boolean): Fleet {
    const fleet = new Fleet();
    for (let id = 1; id <= RARE; id++) {
      fleet.putDevice(fieldsOf({ id, groups: id === RARE ? ['rare'] : ['many'] }));
      fleet.move(id, positionAt(...(isSpot ? SPOT : place(id)), NOW_MS));
    }
    return fleet;
  }

  for (const isSpot of [true, false]) {
    test(`ends early, goes on in steps, and is short the next time${isSpot ? ', also where all are on one spot' : ''}`, () => {
      const fleet = fleetOf(isSpot);
      const filter = filterOf({ group: 'rare' });
      const ask = question(41, 12, 2, Infinity);
      assert.equal(fleet.living.near([1], ask, filter, NOW_MS), null);
      const inSteps = inOneGo(fleet.living.nearInSteps([1], ask, filter, NOW_MS));
      assert.deepEqual(
        inSteps.map(({ device }) => device.imei),
        [imeiOf(RARE)],
      );
      const due = fleet.living.due([1], filter, NOW_MS);
      assert.ok(due !== null);
      inOneGo(due);
      assert.equal(fleet.living.due([1], filter, NOW_MS), null);
      assert.deepEqual(summary(fleet.living.near([1], ask, filter, NOW_MS) ?? []), summary(inSteps));
    });
  }

  test('looks at a bounded number of them at once', () => {
    const index = new PositionIndex(new SlotColumns(RARE));
    for (let slot = 1; slot < RARE; slot++) index.put(slot, ...SPOT);
    let asked = 0;
    const passes = () => ++asked === 0;
    assert.equal(index.near(...SPOT, 1, Infinity, { passes, work: 0.25 }), null);
    assert.ok(asked < 8_100, `${asked} were looked at`);
  });

  test('has the devices that become offline after their index was made, and while it is good no others are turned down', () => {
    const fleet = new Fleet();
    // 600 that go on sending, and one that was heard of nine minutes ago for the last time.
    for (let id = 1; id <= 601; id++) {
      fleet.putDevice(fieldsOf({ id }));
      const ageMs = id === 601 ? 9 * MINUTE_MS : 0;
      fleet.move(id, positionAt(...place(id), NOW_MS - ageMs, { speedKmh: 40 }));
    }
    const filter = filterOf({ status: 'offline' });
    const ask = question(...SPOT, 1, Infinity);
    const imeisAt = (nowMs: number) =>
      fleet.living.near([1], ask, filter, nowMs)?.map(({ device }) => device.imei);
    assert.deepEqual(imeisAt(NOW_MS), []);
    const due = fleet.living.due([1], filter, NOW_MS);
    assert.ok(due !== null);
    inOneGo(due);
    assert.deepEqual(imeisAt(NOW_MS + MINUTE_MS), []);
    assert.deepEqual(imeisAt(NOW_MS + MINUTE_MS + 1), [imeiOf(601)]);
    assert.equal(fleet.living.due([1], filter, NOW_MS + 2 * MINUTE_MS), null);
    assert.ok(fleet.living.due([1], filter, NOW_MS + 3 * MINUTE_MS) !== null, 'it is renewed in time');
    assert.deepEqual(imeisAt(NOW_MS + 20 * MINUTE_MS)?.length, 1);
  });

  test('makes no index of more than half of the devices', () => {
    const fleet = fleetOf(true);
    // From afar, so that the many are turned down.
    const many = filterOf({ group: 'many', max_age_seconds: '1' });
    assert.equal(fleet.living.near([1], question(0, 0, 1, Infinity), many, NOW_MS + 2_000), null);
    const group = filterOf({ group: 'many' });
    for (let n = 0; n < 3; n++)
      assert.equal(fleet.living.near([1], question(0, 0, 1, Infinity), group, NOW_MS)?.length, 1);
    assert.equal(fleet.living.due([1], group, NOW_MS), null);
  });

  test('of one account does not keep another one waiting', async () => {
    const fleet = fleetOf(false);
    fleet.putDevice(fieldsOf({ id: RARE + 1, worldId: 2, groups: ['rare'] }));
    fleet.move(RARE + 1, positionAt(41, 12, NOW_MS));
    const turns = new WorkTurns<string | number>(3);
    const route = nearestRoute({ fleet, turns, atOnce: new AtOnce(turns) });
    const callsOf = (accountId: number) =>
      new RouteCalls([route], { accountId, worldIds: [accountId], nowMs: NOW_MS });
    const [busy, calm] = [callsOf(1), callsOf(2)];
    let answered = 0;
    const attack = Array.from({ length: 20 }, async (_, n) => {
      // Each with a filter of its own, which nobody passes.
      await busy.get('/devices/nearest', `?lat=41&lng=12&group=none-${n}`);
      answered++;
    });
    const { body } = await calm.get('/devices/nearest', '?lat=41&lng=12&group=rare');
    assert.equal(JSON.parse(String(body)).data.length, 1);
    assert.ok(answered < 20, 'it does not wait for the large fleet');
    await Promise.all(attack);
  });
});

describe('GET /devices/nearest with filters', () => {
  const fleet = filledFleet(seededRandom(5), 300, [1]);
  const turns = new WorkTurns<string | number>(3);
  const route = nearestRoute({ fleet, turns, atOnce: new AtOnce(turns) });
  const calls = new RouteCalls([route], { nowMs: NOW_MS });
  const ask = async (query: string) => {
    const { status, body } = await calls.get('/devices/nearest', query);
    return { status, body: JSON.parse(String(body)) };
  };

  test('counts hits by its limit, and shows what it shows without filters', async () => {
    const all = (await ask('?lat=41.9&lng=12.5&limit=50')).body;
    const parked = (await ask('?lat=41.9&lng=12.5&limit=50&status=parked')).body;
    assert.deepEqual(parked.meta, all.meta);
    assert.equal(parked.data.length, 50);
    assert.ok(parked.data.every(({ status }: { status: string }) => status === 'parked'));
    const both = parked.data.filter(({ imei }: { imei: string }) =>
      all.data.some((each: { imei: string }) => each.imei === imei),
    );
    assert.ok(both.length > 0);
    for (const each of both)
      assert.deepEqual(
        each,
        all.data.find(({ imei }: { imei: string }) => imei === each.imei),
      );
  });

  test('refuses what is no filter with 400, after the coordinates', async () => {
    for (const wrong of ['status=x', 'group=,', 'max_age_seconds=0']) {
      const { status, body } = await ask(`?lat=1&lng=1&${wrong}`);
      assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], wrong);
      assert.equal((await ask(`?lat=91&lng=1&${wrong}`)).body.error.code, 'INVALID_COORDINATES');
    }
  });
});
