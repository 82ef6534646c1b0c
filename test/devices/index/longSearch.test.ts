import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NearDevice } from '../../../src/devices/device.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { distanceM } from '../../../src/geo/wgs84.ts';
import type { Steps } from '../../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, positionAt } from '../../support/devices.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';

type Place = readonly [lat: number, lng: number];

const OWN = 1;
const SHARED = 2;
const FOREIGN = 3;
const DEVICES = 9_000;
const POLE: Place = [90, 0];
const DEPOT: Place = [0, 100];

const fields = (id: number, worldId: number, editedAtMs = 0) =>
  fieldsOf({ id, imei: imeiOf((id * 7_919) % 99_991), worldId, editedAtMs });

const position = (at: Place, recordedAtMs: number) => positionAt(...at, recordedAtMs);

/** All on the equator, half of them at one position; those of the foreign world are nearer to the pole. */
function equatorFleet(random: () => number): Fleet {
  const fleet = new Fleet();
  for (let id = 1; id <= DEVICES; id++) {
    const worldId = 1 + (id % 3);
    fleet.putDevice(fields(id, worldId));
    const lat = worldId === FOREIGN ? 3 : 0;
    if (id % 10 !== 0) fleet.move(id, position(id % 2 === 0 ? DEPOT : [lat, 360 * random() - 180], 0));
  }
  return fleet;
}

/** What a search has to answer, worked out from the lists. */
function expected(fleet: Fleet, worldIds: readonly number[], at: Place, limit: number, maxM: number) {
  return fleet
    .page(worldIds, 0, Number.MAX_SAFE_INTEGER)
    .flatMap(({ fields: { imei }, position }) =>
      position === null ? [] : [{ imei, position, m: distanceM(...at, position.lat, position.lng) }],
    )
    .filter(({ m }) => m <= maxM)
    .sort((a, b) => a.m - b.m || (a.imei < b.imei ? -1 : 1))
    .slice(0, limit);
}

const summary = (found: readonly NearDevice[]) =>
  found.map(({ device, distanceM }) => ({
    imei: device.fields.imei,
    position: device.position,
    m: distanceM,
  }));

const NEWCOMERS = 50;
const ID_BY_IMEI = new Map(
  Array.from({ length: DEVICES + NEWCOMERS }, (_, n) => [fields(n + 1, OWN).imei, n + 1]),
);

/** Moves, changes of the world and newcomers, as many as one turn may bring; half of them are of devices that are to be found. */
function changeSome(fleet: Fleet, random: () => number, n: number, hits: readonly { imei: string }[]): void {
  for (let change = 0; change < 20; change++) {
    const hit = hits[Math.floor(random() * 2 * hits.length)];
    const any = 1 + Math.floor(random() * (DEVICES + NEWCOMERS));
    const id = hit === undefined ? any : (ID_BY_IMEI.get(hit.imei) as number);
    const kind = random();
    if (kind < 0.2) fleet.putDevice(fields(id, 1 + Math.floor(3 * random()), n));
    else if (kind < 0.5) fleet.move(id, position(DEPOT, n));
    else fleet.move(id, position([random() < 0.2 ? 1 : 0, 360 * random() - 180], n));
  }
}

function* andThen<T>(steps: Steps<T>, act: () => void): Steps<T> {
  for (let next = steps.next(); ; next = steps.next()) {
    if (next.done === true) return next.value;
    act();
    yield;
  }
}

function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const next = steps.next();
    if (next.done === true) return next.value;
  }
}

describe('a search in steps', () => {
  const views = [[OWN], [OWN, SHARED], [FOREIGN, OWN], [9], [9, SHARED]];

  test('returns what held at its first step, even if devices move, come or leave before its last', () => {
    for (let seed = 1; seed <= runs(1); seed++) {
      const random = seededRandom(seed);
      const fleet = equatorFleet(random);
      for (const [n, view] of views.entries()) {
        for (const maxM of [Number.POSITIVE_INFINITY, distanceM(...POLE, ...DEPOT), 1]) {
          const limit = [1, 50][n % 2] as number;
          const before = expected(fleet, view, POLE, limit, maxM);
          const steps = fleet.nearInSteps(view, ...POLE, limit, maxM);
          const changing = andThen(steps, () => changeSome(fleet, random, seed * 1_000 + n, before));
          assert.deepEqual(summary(finish(changing)), before, `seed ${seed}, worlds ${view}`);
        }
      }
    }
  });

  test('returns that for each of several searches side by side', () => {
    const random = seededRandom(7);
    const fleet = equatorFleet(random);
    const waiting = Array.from({ length: 6 }, (_, n) => [POLE, DEPOT, [89, 5] as Place][n % 3] as Place);
    const running: { steps: Steps<NearDevice[]>; before: ReturnType<typeof expected> }[] = [];
    let done = 0;
    for (let n = 1; done < 6; n++) {
      changeSome(
        fleet,
        random,
        n,
        running.flatMap(({ before }) => before),
      );
      const at = waiting.pop();
      if (at !== undefined) {
        const before = expected(fleet, [OWN, SHARED], at, 20, Number.POSITIVE_INFINITY);
        running.push({
          before,
          steps: fleet.nearInSteps([OWN, SHARED], ...at, 20, Number.POSITIVE_INFINITY),
        });
      }
      for (const one of [...running]) {
        const next = one.steps.next();
        if (next.done !== true) continue;
        assert.deepEqual(summary(next.value), one.before);
        running.splice(running.indexOf(one), 1);
        done++;
      }
    }
  });
});
