import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Steps } from '../../src/base/workTurns.ts';
import type { LatestPosition } from '../../src/engine/device.ts';
import { moveDevices } from '../../src/flows/moveDevices.ts';
import type { Move } from '../../src/flows/moves.ts';
import { putDevices } from '../../src/flows/putDevices.ts';
import { Fleet } from '../../src/memory/fleet.ts';
import { IS_TORTURE } from '../support/torture.ts';

const DEVICES = 10_000;
/** Transactions of ingest that a pod was away from. */
const TRANSACTIONS = IS_TORTURE ? 200 : 10;
const WORLD_ID = 1;

const position = (n: number): LatestPosition => ({
  recordedAtMs: n,
  lat: n % 90,
  lng: n % 180,
  altitudeM: 0,
  speedKmh: 0,
  odometerKm: null,
  movedAtMs: n,
});
const fields = (id: number) => ({
  id,
  imei: String(350_000_000_000_000 + id),
  worldId: WORLD_ID,
  name: null,
  plate: null,
  model: null,
  groups: [],
  editedAtMs: 0,
});

const movesOf = (transaction: number, deviceIds: readonly number[]): Move[] =>
  deviceIds.map((deviceId) => ({ deviceId, position: position(transaction) }));

/** How many calls of `fleet` each step makes, and what the steps return. */
function countSteps<T>(
  fleet: Fleet,
  method: 'move' | 'putDevice',
  steps: Steps<T>,
): { most: number; result: T } {
  let calls = 0;
  const original = fleet[method].bind(fleet) as (...args: unknown[]) => unknown;
  Object.assign(fleet, {
    [method]: (...args: unknown[]) => {
      calls++;
      return original(...args);
    },
  });
  for (let most = 0; ; ) {
    calls = 0;
    const step = steps.next();
    most = Math.max(most, calls);
    if (step.done === true) return { most, result: step.value };
  }
}

describe('what the feed brings after a lag', () => {
  const ids = Array.from({ length: DEVICES }, (_, n) => n + 1);

  test('devices come into memory a few at a time', () => {
    const fleet = new Fleet();
    const rows = ids.map((id) => ({ fields: fields(id), position: position(id) }));
    const { most } = countSteps(fleet, 'putDevice', putDevices(fleet, rows));
    assert.ok(most <= 50, `${most} devices in a step`);
    assert.deepEqual([fleet.deviceCount, fleet.positionedCount], [DEVICES, DEVICES]);
  });

  test('moves are applied a few at a time, however many there are, and the newest stand', () => {
    const fleet = new Fleet();
    for (const id of ids) fleet.putDevice(fields(id));
    const moves = Array.from({ length: TRANSACTIONS }, (_, n) => movesOf(TRANSACTIONS - n, ids)).flat();
    const { most, result } = countSteps(fleet, 'move', moveDevices(fleet, moves));
    assert.ok(most <= 200, `${most} moves in a step`);
    assert.deepEqual(result, []);
    for (const id of ids)
      assert.equal(fleet.anyDevice(fields(id).imei)?.position?.recordedAtMs, TRANSACTIONS);
  });

  test('devices that moved and are not known here are told', () => {
    const { result } = countSteps(new Fleet(), 'move', moveDevices(new Fleet(), movesOf(1, [7, 8])));
    assert.deepEqual(result, [7, 8]);
  });
});
