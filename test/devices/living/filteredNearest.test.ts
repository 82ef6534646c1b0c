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
import { IS_TORTURE, runs } from '../../support/torture.ts';

const WORLDS = [1, 2, 3];
const VIEWS = [[1], [1, 2], [3, 2], [9], [9, 1]];
const OWN = { accountId: 1, worldIds: [1] };
const DEVICES = 1_800;
const MINUTE_MS = 60_000;

function filterOf(asked: Asked): DeviceFilter {
  const filter = readFilter(asked as Record<string, string>, []);
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

/** Each is asked 120 times: ten thousand questions in the long form. */
const FLEETS = IS_TORTURE ? 84 : 1;

describe('nearest with filters', () => {
  test('agrees with brute force while devices change, with an index of those that pass and without', () => {
    let made = 0;
    for (let seed = 1; seed <= FLEETS; seed++) {
      const random = seededRandom(seed);
      const fleet = filledFleet(random, DEVICES, WORLDS);
      const filters = Array.from({ length: 6 }, () => anyFilter(random));
      // Rare ones, for which it pays off to make an index at once.
      filters.push({ group: 'rare' }, { status: 'offline', group: 'rare' }, { max_age_seconds: '1' });
      let nowMs = NOW_MS;
      for (let n = 0; n < 120; n++) {
        for (let change = 0; change < 3; change++)
          changeDevice(fleet, random, 1 + Math.floor(random() * (DEVICES + 20)), WORLDS);
        if (random() < 0.02) nowMs += MINUTE_MS;
        const asked = oneOf(random, filters);
        const filter = filterOf(asked);
        const view = oneOf(random, VIEWS);
        const { lat, lng } = anyPlace(random);
        const ask = question(lat, lng, oneOf(random, [1, 3, 50]), oneOf(random, [Infinity, 40_000, 4e6]));
        const found =
          fleet.living.near({ accountId: 1, worldIds: view }, ask, filter, nowMs) ??
          inOneGo(fleet.living.nearInSteps(view, ask, filter, nowMs));
        const label = `seed ${seed}, question ${n}, ${queryOf(asked)}, worlds ${view}`;
        assert.deepEqual(summary(found), expected(fleet, view, ask, asked, nowMs), label);
        const due = fleet.living.due({ accountId: 1, worldIds: view }, filter, nowMs);
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
      for (let n = 0; n < 4; n++) {
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
    assert.deepEqual(fleet.living.near(OWN, ask, filterOf({ status: 'moving' }), NOW_MS), []);
    fleet.putDevice(fieldsOf({ id: 1, groups: ['north'] }));
    assert.deepEqual(fleet.living.near(OWN, ask, filterOf({ group: 'north' }), NOW_MS), []);
    assert.deepEqual(fleet.living.near(OWN, ask, filterOf({ status: 'unknown' }), NOW_MS), []);
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
      assert.equal(fleet.living.near(OWN, ask, filter, NOW_MS), null);
      const inSteps = inOneGo(fleet.living.nearInSteps([1], ask, filter, NOW_MS));
      assert.deepEqual(
        inSteps.map(({ device }) => device.imei),
        [imeiOf(RARE)],
      );
      const due = fleet.living.due(OWN, filter, NOW_MS);
      assert.ok(due !== null);
      inOneGo(due);
      assert.equal(fleet.living.due(OWN, filter, NOW_MS), null);
      assert.deepEqual(summary(fleet.living.near(OWN, ask, filter, NOW_MS) ?? []), summary(inSteps));
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
      fleet.living.near(OWN, ask, filter, nowMs)?.map(({ device }) => device.imei);
    assert.deepEqual(imeisAt(NOW_MS), []);
    const due = fleet.living.due(OWN, filter, NOW_MS);
    assert.ok(due !== null);
    inOneGo(due);
    assert.deepEqual(imeisAt(NOW_MS + MINUTE_MS), []);
    assert.deepEqual(imeisAt(NOW_MS + MINUTE_MS + 1), [imeiOf(601)]);
    assert.equal(fleet.living.due(OWN, filter, NOW_MS + 2 * MINUTE_MS), null);
    assert.ok(fleet.living.due(OWN, filter, NOW_MS + 3 * MINUTE_MS) !== null, 'it is renewed in time');
    assert.deepEqual(imeisAt(NOW_MS + 20 * MINUTE_MS)?.length, 1);
  });

  test('makes no index of more than half of the devices', () => {
    const fleet = fleetOf(true);
    // From afar, so that the many are turned down.
    const many = filterOf({ group: 'many', max_age_seconds: '1' });
    assert.equal(fleet.living.near(OWN, question(0, 0, 1, Infinity), many, NOW_MS + 2_000), null);
    const group = filterOf({ group: 'many' });
    for (let n = 0; n < 3; n++)
      assert.equal(fleet.living.near(OWN, question(0, 0, 1, Infinity), group, NOW_MS)?.length, 1);
    assert.equal(fleet.living.due(OWN, group, NOW_MS), null);
  });

  describe('in a world of several accounts', () => {
    const GROUPS = Array.from({ length: 24 }, (_, n) => `g${n}`);
    const ask = question(41, 12, 50, Infinity);
    /** Half of them are in the group "half", a few are in each of the others. */
    function crowd(): Fleet {
      const fleet = new Fleet();
      for (let id = 1; id <= RARE; id++) {
        const own = id % 200 < GROUPS.length ? [GROUPS[id % 200] as string] : [];
        fleet.putDevice(fieldsOf({ id, groups: id % 2 === 0 ? ['half', ...own] : own }));
        fleet.move(id, positionAt(...place(id), NOW_MS));
      }
      return fleet;
    }

    /** Asks so often that an index is made where there is room; true: searches need no steps any more. */
    function isIndexed(fleet: Fleet, accountId: number, asked: Asked, nowMs = NOW_MS): boolean {
      const asker = { accountId, worldIds: [1] };
      const filter = filterOf(asked);
      for (let n = 0; n < 2; n++) {
        fleet.living.near(asker, ask, filter, nowMs);
        const due = fleet.living.due(asker, filter, nowMs);
        if (due !== null) inOneGo(due);
      }
      return fleet.living.near(asker, ask, filter, nowMs) !== null;
    }

    test('one account with many filters leaves the others their part', () => {
      const fleet = crowd();
      const filters = GROUPS.map((group) => ({ group }));
      const mine = filters.slice(0, 20).filter((asked) => isIndexed(fleet, 1, asked));
      assert.equal(mine.length, 8, 'alone it has all of them');
      const others = filters.slice(20);
      assert.deepEqual(
        others.map((asked) => isIndexed(fleet, 2, asked)),
        [true, true, true, true],
      );
      for (let round = 0; round < 2; round++)
        for (const asked of filters.slice(0, 20)) isIndexed(fleet, 1, asked);
      assert.deepEqual(
        others.map((asked) => isIndexed(fleet, 2, asked)),
        [true, true, true, true],
        'they keep it, however often the first one asks',
      );
    });

    test('one account with half of the devices in its indexes leaves the others their part', () => {
      const fleet = crowd();
      const near = { accountId: 1, worldIds: [1] };
      const half = filterOf({ group: 'half', max_age_seconds: '3600' });
      let isMade = false;
      for (let n = 0; n < 100 && !isMade; n++) {
        fleet.living.near(near, ask, half, NOW_MS);
        const due = fleet.living.due(near, half, NOW_MS);
        if (due !== null) inOneGo(due);
        isMade = due !== null;
      }
      assert.ok(isMade);
      assert.ok(isIndexed(fleet, 2, { group: 'g3' }));
    });

    test('filters that nobody passes do not make a service forget how often another account asks', () => {
      const fleet = crowd();
      const asker = (accountId: number) => ({ accountId, worldIds: [1] });
      const rare = filterOf({ group: 'g3' });
      let isDue = false;
      for (let n = 0; n < 40 && !isDue; n++) {
        fleet.living.near(asker(2), question(41.9, 13, 1, Infinity), rare, NOW_MS);
        isDue = fleet.living.due(asker(2), rare, NOW_MS) !== null;
        for (let k = 0; k < 100; k++)
          fleet.living.near(asker(1), question(41, 12, 1, 1), filterOf({ group: `none-${n}-${k}` }), NOW_MS);
      }
      assert.ok(isDue);
    });

    test('an index that its account does not use any more is that of who does', () => {
      const fleet = crowd();
      const filters = GROUPS.map((group) => ({ group }));
      assert.ok(isIndexed(fleet, 1, filters[0] as Asked));
      assert.ok(isIndexed(fleet, 2, filters[0] as Asked, NOW_MS + MINUTE_MS + 1));
      // The first account has all others, and has to give one up for a third one.
      const later = NOW_MS + MINUTE_MS + 2;
      for (const asked of filters.slice(1, 9)) isIndexed(fleet, 1, asked, later);
      assert.ok(isIndexed(fleet, 3, filters[20] as Asked, later));
      const [second, filter] = [{ accountId: 2, worldIds: [1] }, filterOf(filters[0] as Asked)];
      assert.notEqual(fleet.living.near(second, ask, filter, later), null);
    });
  });

  test('of one account does not keep another one waiting, not even one that takes turns itself', async () => {
    const fleet = fleetOf(false);
    for (let id = RARE + 1; id <= 2 * RARE; id++) {
      fleet.putDevice(fieldsOf({ id, worldId: 2, groups: id === 2 * RARE ? ['rare'] : ['many'] }));
      fleet.move(id, positionAt(...place(id), NOW_MS));
    }
    const turns = new WorkTurns<string | number>(3);
    const route = nearestRoute({ fleet, turns, atOnce: new AtOnce(turns) });
    const callsOf = (accountId: number) =>
      new RouteCalls([route], { accountId, worldIds: [accountId], nowMs: NOW_MS });
    const [busy, calm] = [callsOf(1), callsOf(2)];
    const countOf = async (calls: RouteCalls, more: string): Promise<number> => {
      const { status, body } = await calls.get('/devices/nearest', `?lat=41&lng=12&limit=3${more}`);
      assert.equal(status, 200);
      return JSON.parse(String(body)).data.length;
    };
    let answered = 0;
    const attack = Array.from({ length: 20 }, async (_, n) => {
      // Each with a filter of its own, which nobody passes.
      await countOf(busy, `&group=none-${n}`);
      answered++;
    });
    assert.equal(await countOf(calm, ''), 3);
    assert.equal(answered, 0, 'what needs no turns waits for none');
    assert.equal(await countOf(calm, '&group=rare'), 1);
    assert.ok(answered <= 2, `${answered} long searches of another account came first`);
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
