import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Keyring } from '../../src/access/authorizer.ts';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { applyChanges, emptyMemory } from '../../src/coherence/applyChanges.ts';
import { type LatestPosition, NO_MOTION } from '../../src/devices/device.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import {
  applyPositionUpdates,
  encodePositionUpdates,
  type PositionUpdate,
  putDevices,
} from '../../src/devices/positionUpdates.ts';
import { NO_PACKED_STAYS, packStays, type Stay } from '../../src/devices/stays/packedStays.ts';
import { Subscriptions, Tenancy } from '../../src/ingest/watchers.memory.ts';
import { type Steps, WorkTurns } from '../../src/lib/workTurns.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import type { ShareState } from '../../src/shares/share.ts';
import { IS_TORTURE } from '../support/torture.ts';

const DEVICES = 10_000;
/** Transactions of ingest that a pod has missed. */
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

const updatesOf = (transaction: number, deviceIds: readonly number[]): PositionUpdate[] =>
  deviceIds.map((deviceId) => ({
    deviceId,
    position: position(transaction),
    motion: NO_MOTION,
    stays: null,
  }));

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

describe('changes of the feed', () => {
  const ids = Array.from({ length: DEVICES }, (_, n) => n + 1);

  test('devices are put into memory a few at a time', () => {
    const fleet = new Fleet();
    const rows = ids.map((id) => ({
      fields: fields(id),
      editedXid: 0,
      position: position(id),
      motion: NO_MOTION,
      stays: NO_PACKED_STAYS,
    }));
    const { most } = countSteps(fleet, 'putDevice', putDevices(fleet, rows));
    assert.ok(most <= 50, `${most} devices in a step`);
    assert.deepEqual([fleet.deviceCount, fleet.positionedCount], [DEVICES, DEVICES]);
  });

  test('position updates are applied a few at a time, however many there are, and the newest stay', () => {
    const fleet = new Fleet();
    for (const id of ids) fleet.putDevice(fields(id));
    const updates = Array.from({ length: TRANSACTIONS }, (_, n) => updatesOf(TRANSACTIONS - n, ids)).flat();
    const { most, result } = countSteps(fleet, 'move', applyPositionUpdates(fleet, updates));
    assert.ok(most <= 200, `${most} updates in a step`);
    assert.deepEqual(result, []);
    for (const id of ids)
      assert.equal(fleet.anyDevice(fields(id).imei)?.position?.recordedAtMs, TRANSACTIONS);
  });

  test('stays are given to devices a few at a time, those of one device too', () => {
    const fleet = new Fleet();
    const deviceIds = ids.slice(0, 300);
    for (const id of deviceIds) fleet.putDevice(fields(id));
    const areas = Array.from({ length: 1_000 }, (_, n) => n + 1);
    const stays = areas.map((areaId): Stay => ({ areaId, insideSinceMs: 1, confirmedAtMs: 1 }));
    const updates = updatesOf(1, deviceIds).map((update, n) => ({
      ...update,
      stays: packStays(stays.slice(0, n < 2 ? 1_000 : 60)),
    }));
    const inArea = (areaId: number): number =>
      fleet.occupants([WORLD_ID], areaId, 'all', { offset: 0, limit: 1 }).total;
    let before = 0;
    for (const _ of applyPositionUpdates(fleet, updates)) {
      const held = areas.reduce((sum, areaId) => sum + inArea(areaId), 0);
      assert.ok(held - before <= 300, `${held - before} stays in a step`);
      before = held;
    }
    assert.deepEqual([inArea(1), inArea(60), inArea(61), inArea(1_000)], [300, 300, 2, 2]);
  });

  test('a page of the feed has every second step, however many accounts compute beside it', async () => {
    const fleet = new Fleet();
    for (const id of ids) fleet.putDevice(fields(id));
    const payload = encodePositionUpdates(updatesOf(1, ids));
    const change = { kind: 'positions', worldId: null, worldVersion: null, entityIds: [], xid: 1 } as const;
    const turns = new WorkTurns<string>(0);
    let [ofFeed, ofOthers, isOver] = [0, 0, false];
    function* others(): Steps<void> {
      for (; !isOver; ofOthers++) yield;
    }
    function* counted<T>(steps: Steps<T>): Steps<T> {
      for (let step = steps.next(); ; step = steps.next()) {
        if (step.done === true) return step.value;
        ofFeed++;
        yield;
      }
    }
    const run: typeof turns.run = (key, steps, isUrgent) => turns.run(key, counted(steps), isUrgent);
    const beside = Array.from({ length: 30 }, (_, n) => turns.run(`account ${n}`, others()));
    const sql = (() => Promise.resolve([])) as unknown as Sql;
    const memory = {
      fleet,
      areas: new AreaCatalog(),
      keyring: new Keyring(),
      shares: new Keyring<ShareState>(),
      tenancy: new Tenancy(),
      subscriptions: new Subscriptions(),
    };
    const ports = { sql, turns: { run }, awaitReply: <T>(reply: Promise<T>) => reply };
    const page = { ...change, payload, stays: '[]' };
    await applyChanges(ports, memory, Array(5).fill(page));
    isOver = true;
    await Promise.all(beside);
    assert.equal(fleet.positionedCount, DEVICES);
    assert.ok(ofFeed > 20, `${ofFeed} steps of the feed`);
    assert.ok(ofOthers <= 1.5 * ofFeed + 60, `${ofOthers} of others beside ${ofFeed} of the feed`);
  });

  test('position updates of own transactions, which memory has, make something new in the worlds of their devices', async () => {
    const memory = emptyMemory();
    for (const worldId of [1, 2, 3]) memory.fleet.watch.follow(worldId);
    const change = {
      kind: 'positions',
      worldId: null,
      worldVersion: null,
      entityIds: [],
      stays: null,
    } as const;
    const changes = [4, 5, 6].map((xid) => ({ ...change, payload: null, xid }));
    const own = new Map([
      [4, new Set([1])],
      [6, new Set([1, 3])],
    ]);
    const sql = (() => Promise.resolve([])) as unknown as Sql;
    const ports = { sql, turns: new WorkTurns<string>(0), awaitReply: <T>(reply: Promise<T>) => reply };
    await applyChanges(ports, memory, changes, own);
    assert.deepEqual([...memory.fleet.watch.touched('devices')], [1, 3]);
  });

  test('of devices that had one IMEI, the last removal counts, in whatever order they are read', async () => {
    const removal = (id: number, xid: string, at: number) => {
      const row = { world_id: WORLD_ID, device_id: id, imei: fields(1).imei, xid, xmax: 1_000 };
      return { ...row, at: new Date(at) };
    };
    const rows = [removal(1, '20', 1_000), removal(2, '22', 2_000)];
    for (const read of [rows, rows.toReversed()]) {
      const memory = emptyMemory();
      // Another pod knew the second one as well, which was made by transaction 21.
      memory.fleet.putDevice(fields(1), 10);
      const query = (text: readonly string[]) =>
        Promise.resolve(text.join().includes('device_removal') ? [...read] : []);
      const sql = Object.assign(query, { copy: () => Promise.resolve() }) as unknown as Sql;
      const ports = { sql, turns: new WorkTurns<string>(0), awaitReply: <T>(reply: Promise<T>) => reply };
      const change = {
        kind: 'device',
        worldId: WORLD_ID,
        worldVersion: null,
        payload: null,
        stays: null,
      } as const;
      await applyChanges(ports, memory, [
        { ...change, entityIds: [1], xid: 20 },
        { ...change, entityIds: [2], xid: 22 },
      ]);
      const isWanted = () => true;
      const changed = memory.fleet.changed([WORLD_ID], { fromXid: 0, after: null, limit: 9, isWanted });
      assert.deepEqual(
        changed.map(({ device, editedXid }) => [device, editedXid]),
        [[null, 22]],
      );
    }
  });

  test('position updates of unknown devices return their ids', () => {
    const { result } = countSteps(
      new Fleet(),
      'move',
      applyPositionUpdates(new Fleet(), updatesOf(1, [7, 8])),
    );
    assert.deepEqual(result, [7, 8]);
  });
});
