import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { Ages } from '../../../src/devices/living/ages.memory.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, positionAt } from '../../support/devices.ts';
import { NOW_MS, oneOf } from '../../support/filteredFleet.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';

const MINUTE_MS = 60_000;
const WORLDS = [1, 2];

test('the devices that have come to be older than some ages are those that a look at all of them finds', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 30 }), (seed) => {
      const random = seededRandom(seed);
      const fleet = new Fleet();
      for (let step = 0; step < 400; step++) {
        const id = 1 + Math.floor(random() * 50);
        const recordedAtMs = NOW_MS + step * 1_000 - Math.floor(random() ** 3 * 100 * MINUTE_MS);
        const isGone = random() < 0.1;
        if (isGone) {
          const worldId = fleet.worldOf(imeiOf(id));
          const removal = { deviceId: id, imei: imeiOf(id), xid: step, atMs: NOW_MS };
          if (worldId !== undefined) fleet.putRemoval(worldId, removal, true);
        } else {
          fleet.putDevice(fieldsOf({ id, worldId: oneOf(random, [1, 2, 3]), editedAtMs: step }), step);
          if (random() < 0.9) fleet.move(id, positionAt(1, 1, recordedAtMs));
        }
        if (step % 10 !== 0) continue;
        const agesMs = [oneOf(random, [1_000, 10 * MINUTE_MS]), 60 * MINUTE_MS];
        const toMs = NOW_MS + step * 1_000;
        const fromMs = toMs - oneOf(random, [0, 1, 30_000, 50 * MINUTE_MS]);
        const found: number[] = [];
        inOneGo(fleet.living.aged(WORLDS, agesMs, fromMs, toMs, (id) => found.push(id)));
        const expected = agesMs.flatMap((ageMs) =>
          fleet
            .page(WORLDS, 0, 100)
            .filter(({ position }) => {
              const agedAtMs = (position?.recordedAtMs ?? Number.NaN) + ageMs;
              return agedAtMs >= fromMs && agedAtMs < toMs;
            })
            .map((device) => device.id),
        );
        assert.deepEqual(found.sort(), expected.sort());
      }
    }),
    { seed: 4, numRuns: runs(20) },
  );
});

test('a world that nobody follows by age for five minutes keeps no ages', (t) => {
  const put = t.mock.method(Ages.prototype, 'put');
  const fleet = new Fleet();
  fleet.putDevice(fieldsOf({ id: 1, worldId: 1 }), 1);
  const move = (atMs: number): void => void fleet.move(1, positionAt(1, 1, atMs, { movedAtMs: atMs }));
  const putsOf = (work: () => unknown): number => {
    const before = put.mock.callCount();
    work();
    return put.mock.callCount() - before;
  };
  const ask = (atMs: number): number => {
    let found = 0;
    inOneGo(fleet.living.aged([1], [1_000], 0, atMs, () => found++));
    return found;
  };
  assert.equal(
    putsOf(() => move(NOW_MS)),
    0,
  );
  ask(NOW_MS);
  assert.equal(
    putsOf(() => move(NOW_MS + 5 * MINUTE_MS)),
    1,
  );
  ask(NOW_MS + 5 * MINUTE_MS);
  move(NOW_MS + 10 * MINUTE_MS + 1);
  assert.equal(
    putsOf(() => move(NOW_MS + 11 * MINUTE_MS)),
    0,
  );
  assert.equal(ask(NOW_MS + 12 * MINUTE_MS), 1, 'they are found again');
});
