import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { RecordedEvent } from '../../src/feeds/eventFeed.sql.ts';
import { fieldsOf, imeiOf, positionAt } from '../support/devices.ts';
import { SHARED_WORLD } from '../support/feeds/changingFleet.ts';
import { WORLD } from '../support/feeds/memoryFeed.ts';
import { type FakeReader, MemoryStreams } from '../support/feeds/memoryStreams.ts';
import { anyPlace, NOW_MS, oneOf, type Random } from '../support/filteredFleet.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

const MANY = 600;
const NAMES = [null, 'Van 12', 'VAN "3"', 'ΟΔΟΣ 🚚', 'Straße\\7\n'];
const ID = /^id: (.*)$/gm;

/** A device as a customer knows it, written down beside the service. */
interface Known {
  readonly id: number;
  readonly worldId: number;
  readonly name: string | null;
  readonly editedAtMs: number;
  readonly point: null | {
    readonly lat: number;
    readonly lng: number;
    readonly speedKmh: number;
    readonly recordedAtMs: number;
    readonly headingDeg: number;
    readonly ignition: boolean | null;
  };
}

/** The naive encoder: what one reader is told of the changes between two flushes, each message by JSON.stringify. */
class NaiveStream {
  text = '';

  flush(
    devices: ReadonlyMap<string, Known>,
    changed: readonly string[],
    events: readonly RecordedEvent[],
  ): void {
    // A device comes once, where it was changed last.
    const order = [...new Set(changed.toReversed())].reverse();
    for (const imei of order) this.#message('device', deviceOf(imei, devices.get(imei)));
    for (const { xid: _, ...event } of events) this.#message('fleet_event', event);
  }

  #message(type: string, data: object): void {
    this.text += `event: ${type}\nid: \ndata: ${JSON.stringify(data)}\n\n`;
  }
}

function deviceOf(imei: string, known: Known | undefined): object {
  if (known === undefined) return { id: imei, imei, removed: true };
  const { name, point, editedAtMs } = known;
  const location = point && {
    latitude: point.lat,
    longitude: point.lng,
    speed_kmh: point.speedKmh,
    recorded_at: new Date(point.recordedAtMs).toISOString(),
    heading: point.headingDeg,
    altitude_m: 0,
  };
  const status = point === null ? 'unknown' : point.speedKmh < 5 ? 'parked' : 'moving';
  return {
    ...{ id: imei, imei, name, plate: null, device_model: null, odometer_km: null, status, groups: [] },
    location,
    updated_at: new Date(Math.max(editedAtMs, point?.recordedAtMs ?? 0)).toISOString(),
    ignition: point?.ignition ?? null,
  };
}

/** Commits that a test makes, which are sent together where no time passes between them. */
class Scene {
  readonly memory: MemoryStreams;
  readonly naive = new NaiveStream();
  readonly devices = new Map<string, Known>();
  readonly #random: Random;
  readonly #count: number;
  #changed: string[] = [];
  #told = 0;
  #nextId = 1;
  #at = 0;

  constructor(t: TestContext, random: Random, count: number) {
    this.memory = new MemoryStreams(t);
    this.#random = random;
    this.#count = count;
  }

  /** One transaction changes some devices and may produce events. */
  commit(some = 1 + Math.floor(this.#random() * 4)): void {
    const random = this.#random;
    const imeis = new Set(Array.from({ length: some }, () => imeiOf(Math.floor(random() * this.#count))));
    this.memory.change((xid) => {
      // Within a transaction by id, as ids are given out.
      const byId = (imei: string) => this.devices.get(imei)?.id ?? Number.MAX_SAFE_INTEGER;
      for (const imei of [...imeis].sort((a, b) => byId(a) - byId(b))) this.#change(imei, xid);
      if (random() < 0.5) this.#produce(xid);
    });
  }

  #change(imei: string, xid: number): void {
    const random = this.#random;
    const { fleet } = this.memory;
    const known = this.devices.get(imei);
    if (known !== undefined && random() < 0.1) {
      fleet.putRemoval(known.worldId, { deviceId: known.id, imei, xid, atMs: NOW_MS }, true);
      this.devices.delete(imei);
      this.#changed.push(imei);
      return;
    }
    const edited = { name: oneOf(random, NAMES), editedAtMs: NOW_MS + ++this.#at };
    const worldId = oneOf(random, [WORLD, SHARED_WORLD]);
    let now = known ?? { id: this.#nextId++, worldId, ...edited, point: null };
    if (known === undefined || random() < 0.2) {
      now = { ...now, ...edited };
      fleet.putDevice(fieldsOf({ ...now, imei }), xid);
    }
    if (random() < 0.9) {
      const speedKmh = oneOf(random, [0, 4.9, 5, 80.5]);
      const recordedAtMs = NOW_MS + ++this.#at;
      const point = { ...anyPlace(random), speedKmh, recordedAtMs };
      const [headingDeg, ignition] = [Math.floor(random() * 360), oneOf(random, [null, true, false])];
      const position = positionAt(point.lat, point.lng, recordedAtMs, { speedKmh, movedAtMs: recordedAtMs });
      fleet.move(now.id, position, { headingDeg, ignition, revision: xid, xid });
      now = { ...now, point: { ...point, headingDeg, ignition } };
    }
    if (now === known) return;
    this.devices.set(imei, now);
    this.#changed.push(imei);
  }

  #produce(xid: number): void {
    for (let n = Math.floor(this.#random() * 3); n >= 0; n--) {
      const id = this.memory.events.all.length + 1;
      const at = new Date(NOW_MS + id);
      const named = { type: 'ignition_on', message: `„${id}“`, device_imei: imeiOf(0) } as const;
      this.memory.events.all.push({
        id,
        xid,
        ...named,
        data: { n: id },
        read: false,
        occurred_at: at,
        recorded_at: at,
      });
    }
    this.memory.fleet.watch.touch('events', WORLD);
  }

  /** Everything that was committed since the last time is sent together. */
  async flush(): Promise<void> {
    await this.memory.catchUp();
    this.naive.flush(this.devices, this.#changed, this.memory.events.all.slice(this.#told));
    this.#changed = [];
    this.#told = this.memory.events.all.length;
  }

  open(request: { cursor?: string; withSnapshot?: boolean } = {}) {
    return this.memory.open(null, { withSnapshot: false, events: true, ...request });
  }
}

const textOf = ({ text }: FakeReader): string => text.replaceAll(ID, 'id: ');

/** Shows the first message that differs: all of them are too long to be read. */
function assertSame(found: string, expected: string): void {
  const [ours, naive] = [found, expected].map((text) => text.split('\n\n')) as [string[], string[]];
  const n = ours.findIndex((message, at) => message !== naive[at]);
  if (n !== -1) assert.equal(ours[n], naive[n], `message ${n}`);
  assert.equal(found.length, expected.length);
}

describe('the bytes of streams without a view', () => {
  test('are those of a naive encoder, and the same for all who read, whatever commits are sent together', async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 30 }), async (seed) => {
        const random = seededRandom(seed);
        const scene = new Scene(t, random, 12);
        const { reader: first } = await scene.open();
        const { reader: second } = await scene.open();
        await scene.flush();
        for (let flush = 0; flush < 12; flush++) {
          for (let n = Math.floor(random() * 6); n >= 0; n--) scene.commit();
          await scene.flush();
        }
        assertSame(textOf(first), scene.naive.text);
        assertSame(second.text, first.text);
        await proveResumed(scene, first, random);
        scene.memory.close();
      }),
      { seed: 3, numRuns: runs(12) },
    );
  });

  test('are those of a naive encoder where a commit takes several pages', async (t) => {
    const scene = new Scene(t, seededRandom(5), MANY);
    const { reader } = await scene.open();
    await scene.flush();
    for (let flush = 0; flush < 3; flush++) {
      scene.commit(2 * MANY);
      await scene.flush();
    }
    assertSame(textOf(reader), scene.naive.text);
    scene.memory.close();
  });
});

/** Behind any message another stream goes on: it tells the last of every device, and every event once. */
async function proveResumed(scene: Scene, of: FakeReader, random: Random): Promise<void> {
  const messages = of.text.split('\n\n').slice(0, -1);
  const at = Math.floor(random() * messages.length);
  const cursor = /^id: (.*)$/m.exec(messages[at] ?? '')?.[1] ?? '';
  const { reader } = await scene.open({ cursor });
  await scene.memory.catchUp();
  const before = messages.slice(0, at + 1).join('\n\n');
  const told = dataOf(`${before}\n\n${reader.text}`);
  const last = new Map(told.devices.map((device) => [device.imei, device]));
  for (const [imei, device] of last) {
    assert.deepEqual(device, JSON.parse(JSON.stringify(deviceOf(imei, scene.devices.get(imei)))));
  }
  assert.deepEqual(
    [...scene.devices.keys()].filter((imei) => !last.has(imei)),
    [],
  );
  assert.deepEqual(
    told.events.map(({ id }) => id),
    scene.memory.events.all.map(({ id }) => id),
  );
}

function dataOf(text: string) {
  const of = <T>(type: string): T[] =>
    [...text.matchAll(new RegExp(`^event: ${type}\nid: .*\ndata: (.*)$`, 'gm'))].map(([, data = '']) =>
      JSON.parse(data),
    );
  return { devices: of<{ imei: string }>('device'), events: of<{ id: number }>('fleet_event') };
}
