import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { Box } from '../../src/devices/living/boxRegion.ts';
import { readFilter } from '../../src/devices/living/deviceFilter.ts';
import type { DeviceView } from '../../src/feeds/streams/viewer.ts';
import { imeiOf, positionAt } from '../support/devices.ts';
import { ChangingFleet, SHARED_WORLD } from '../support/feeds/changingFleet.ts';
import { WORLD } from '../support/feeds/memoryFeed.ts';
import { type FakeReader, MemoryStreams } from '../support/feeds/memoryStreams.ts';
import {
  type Asked,
  anyFilter,
  isInside,
  NOW_MS,
  oneOf,
  passes,
  type Random,
} from '../support/filteredFleet.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

const DEVICES = 40;
const WORLDS = [WORLD, SHARED_WORLD];
const MINUTE_MS = 60_000;

interface Shown {
  readonly asked: Asked | null;
  readonly box: Box | null;
  readonly reader: FakeReader;
  close(): void;
}

function anyBox(random: Random): Box {
  return oneOf(random, [
    { west: -180, south: -90, east: 180, north: 90 },
    { west: 12.4, south: 41.8, east: 12.5, north: 42 },
    { west: 179.95, south: -20, east: -179.95, north: 0 },
    { west: -180, south: -20, east: 10, north: 90 },
    { west: 12.5, south: 41.9, east: 12.5, north: 41.9 },
  ]);
}

function viewOf(box: Box | null, asked: Asked | null): DeviceView {
  const filter = readFilter((asked ?? {}) as Record<string, string>, []);
  assert.ok(filter.ok);
  return { box, filter: filter.value };
}

/** Streams that show some of the devices of a fleet. */
class Scene {
  readonly memory: MemoryStreams;
  readonly #random: Random;
  readonly #shown: Shown[] = [];
  readonly #fleet: ChangingFleet;

  constructor(t: TestContext, seed: number) {
    this.memory = new MemoryStreams(t);
    this.#random = seededRandom(seed);
    this.#fleet = new ChangingFleet(this.memory, this.#random, DEVICES);
  }

  async step(): Promise<void> {
    const random = this.#random;
    const fleet = this.#fleet;
    const steps: (() => Promise<void> | void)[] = [
      () => fleet.change(fleet.anyImei),
      () => fleet.change(fleet.anyImei),
      () => fleet.change(fleet.anyImei),
      () => fleet.delete(fleet.anyImei),
      () => {
        const imei = fleet.anyImei;
        fleet.delete(imei);
        fleet.change(imei);
      },
      () => this.memory.run(20),
      () => this.memory.run(600),
      // A reader that takes nothing for so long is cut off.
      () =>
        this.#shown.some(({ reader }) => reader.isSlow)
          ? undefined
          : fleet.pass(oneOf(random, [1_000, 59_000, 5 * MINUTE_MS, 10 * MINUTE_MS, 1_440 * MINUTE_MS])),
      () => this.#open(),
      () => {
        const some = oneOf(random, this.#shown);
        if (some === undefined) return;
        if (some.reader.isSlow) some.reader.takeAll();
        else {
          some.reader.isSlow = true;
          some.reader.pendingBytes = 600_000;
        }
      },
    ];
    await oneOf(random, steps)();
  }

  async prove(): Promise<void> {
    for (const { reader } of this.#shown) reader.takeAll();
    await this.memory.catchUp();
    const devices = this.memory.fleet.page(WORLDS, 0, 1_000);
    for (const { box, asked, reader } of this.#shown) {
      assert.equal(reader.isEnded, false, 'nothing ends a stream');
      const expected = devices
        .filter(
          (device) =>
            (box === null || isInside(box, device.position)) &&
            (asked === null || passes(device, asked, this.#fleet.nowMs)),
        )
        .map((device) => placeOf(device.imei, device.position?.lat, device.position?.lng));
      const found = [...reader.shown].map(([imei, { location }]) =>
        placeOf(imei, location?.latitude, location?.longitude),
      );
      assert.deepEqual(found.sort(), expected.sort(), JSON.stringify({ box, asked }));
    }
  }

  close(): void {
    for (const shown of this.#shown) shown.close();
    this.memory.close();
  }

  async #open(): Promise<void> {
    const random = this.#random;
    if (this.#shown.length >= 8) this.#shown.shift()?.close();
    const [hasBox, hasFilter] = oneOf(random, [
      [true, false],
      [false, true],
      [true, true],
    ]);
    const [box, asked] = [hasBox ? anyBox(random) : null, hasFilter ? anyFilter(random) : null];
    const keyId = Math.floor(random() * 1e9);
    this.#shown.push({ box, asked, ...(await this.memory.open(viewOf(box, asked), { keyId })) });
  }
}

const placeOf = (imei: string, lat: number | undefined, lng: number | undefined) => `${imei} ${lat} ${lng}`;

describe('streams that show a box or what passes a filter', () => {
  test('show exactly what is in it, whatever moves, is edited, deleted, made again or ages, and however slow their readers are', async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 30 }), async (seed) => {
        const scene = new Scene(t, seed);
        for (let round = 0; round < 6; round++) {
          for (let n = 0; n < 60; n++) await scene.step();
          await scene.prove();
        }
        scene.close();
      }),
      { seed: 5, numRuns: runs(3) },
    );
  });

  test('of one account, however many and of the whole world, hold up those of another for a few turns only', async (t) => {
    const memory = manyDevices(t, 300);
    const attackers = await Promise.all(
      Array.from({ length: 150 }, (_, n) =>
        memory.open({ box: { ...WHOLE_WORLD, west: -180 + n / 10 }, filter: null }, { keyId: n }),
      ),
    );
    const victim = await memory.open({ box: WHOLE_WORLD, filter: null }, { accountId: 2 });
    await memory.catchUp();
    assert.ok(attackers.every(({ reader }) => !reader.isEnded && reader.bytes > 0));
    const before = victim.reader.bytes;
    moveAll(memory, 300, 1);
    t.mock.timers.tick(25);
    let turns = 0;
    for (; victim.reader.bytes === before; turns++) await new Promise((resolve) => setImmediate(resolve));
    const left = await memory.settle();
    // How many a turn does is up to the clock.
    assert.ok(left > 4 * turns, `after ${turns} turns; ${left} more were needed for the others`);
    memory.close();
  });

  test('have less than 1 MB waiting for a reader that takes nothing, and it is told what left meanwhile', async (t) => {
    const memory = manyDevices(t, 3_000);
    const { reader } = await memory.open({ box: WHOLE_WORLD, filter: null });
    await memory.catchUp();
    reader.isSlow = true;
    for (let round = 1; round <= 4; round++) {
      moveAll(memory, 3_000, round);
      await memory.run(600);
    }
    assert.ok(
      reader.mostPendingBytes > 0 && reader.mostPendingBytes < 1_000_000,
      `${reader.mostPendingBytes}`,
    );
    memory.change((xid) =>
      memory.fleet.putRemoval(WORLD, { deviceId: 7, imei: imeiOf(7), xid, atMs: NOW_MS }, true),
    );
    reader.takeAll();
    await memory.catchUp();
    assert.equal(reader.shown.size, 2_999);
    const last = memory.fleet.page([WORLD], 0, 1)[0]?.position?.lat;
    assert.ok([...reader.shown.values()].every(({ location }) => location?.latitude === last));
    memory.close();
  });

  test('make the message of a device once, for all readers of an account', async (t) => {
    const memory = manyDevices(t, 100);
    const boxes = [WHOLE_WORLD, { ...WHOLE_WORLD, east: 179 }, { ...WHOLE_WORLD, north: 89 }];
    const opened = await Promise.all(boxes.map((box) => memory.open({ box, filter: null })));
    await memory.catchUp();
    const write = t.mock.method(memory.ports.texts, 'device');
    moveAll(memory, 100, 1);
    await memory.catchUp();
    for (const { reader } of opened) assert.equal(reader.shown.size, 100);
    assert.equal(write.mock.callCount(), 100);
    memory.close();
  });

  test('take a cursor of a stream without a view only for events, and give out one without devices', async (t) => {
    const memory = manyDevices(t, 3);
    const whole = await memory.open(null);
    const boxed = await memory.open({ box: WHOLE_WORLD, filter: null });
    await memory.catchUp();
    for (const { reader } of [whole, boxed]) assert.equal(reader.shown.size, 3);
    const again = await memory.open(
      { box: WHOLE_WORLD, filter: null },
      { cursor: whole.reader.ids.at(-1) ?? '' },
    );
    const other = await memory.open(null, { cursor: boxed.reader.ids.at(-1) ?? '' });
    await memory.catchUp();
    for (const { reader } of [again, other]) assert.equal(reader.shown.size, 3);
    const caller = { id: 1, accountId: 1, worldIds: WORLDS };
    const query = { cursor: boxed.reader.ids.at(-1) ?? '', limit: 10, waitMs: 0, gatherMs: 0 };
    assert.equal(memory.feed.next(caller, query), 'malformed');
    memory.close();
  });
});

const WHOLE_WORLD = { west: -180, south: -90, east: 180, north: 90 };

function manyDevices(t: TestContext, count: number): MemoryStreams {
  const memory = new MemoryStreams(t, count);
  moveAll(memory, count, 0);
  return memory;
}

function moveAll(memory: MemoryStreams, count: number, round: number): void {
  memory.change((xid) => {
    for (let id = 1; id <= count; id++) {
      const position = positionAt(round / 100, 100, NOW_MS + round);
      memory.fleet.move(id, position, { headingDeg: 0, ignition: null, revision: xid, xid });
    }
  });
}
