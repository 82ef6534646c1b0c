import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SNAPSHOT_MAX_BYTES, Snapshot } from '../../src/changelog/appliedTransactions.memory.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { type DevicesPage, firstRead, isCurrent } from '../../src/feeds/readDevices.ts';
import { readInSteps } from '../../src/feeds/readInSteps.ts';
import type { Steps } from '../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, positionAt } from '../support/devices.ts';
import { runs } from '../support/torture.ts';

const WORLD_IDS = [1, 2] as const;
const DEVICES = 12;
const fieldsAt = (id: number, worldId: number, revision: number) =>
  fieldsOf({ id, worldId, name: String(revision), editedAtMs: revision });

/** What a transaction does to its device; one that moves it to the other world renames it too. */
type Kind = 'position' | 'name' | 'world' | 'delete';
const KINDS: readonly Kind[] = ['position', 'position', 'name', 'world', 'world', 'delete'];

interface Transaction {
  readonly xid: number;
  readonly kind: Kind;
  readonly deviceId: number;
  readonly revision: number;
  readonly fromWorldId: number;
}

/** A page that is read in steps. */
interface Reading {
  readonly limit: number;
  readonly steps: Steps<DevicesPage | null>;
}

/** What is known of a device: the revisions of its last edit and of its last position. */
type State = readonly [name: number, position: number];

/** One pod: it follows commits up to a snapshot, and knows its own before. */
class Pod {
  readonly fleet = new Fleet();
  readonly own = new Set<number>();
  followed = new Snapshot(1, 1, []);
}

function apply({ fleet }: Pod, { xid, kind, deviceId, revision, fromWorldId }: Transaction): void {
  const left = { deviceId, imei: imeiOf(deviceId), xid, atMs: revision };
  if (kind === 'delete') fleet.putRemoval(fromWorldId, left, true);
  else if (kind === 'name') fleet.putDevice(fieldsAt(deviceId, fromWorldId, revision), xid);
  else if (kind === 'world') {
    fleet.putDevice(fieldsAt(deviceId, 3 - fromWorldId, revision), xid);
    fleet.putRemoval(fromWorldId, left, false);
  } else {
    fleet.move(deviceId, positionAt(0, 0, revision), { headingDeg: 0, ignition: null, revision, xid });
  }
}

/**
 * Transactions take their number when they begin, change a device under its lock, and commit in any order; two pods learn
 * of them when they follow; one of them of its own positions at once. A reader who sees both worlds goes from pod to pod
 * with its cursor.
 */
test('whatever the order in which transactions commit, a reader who hops between pods ends with every last state', () => {
  const step = fc.record({
    kind: fc.constantFrom(
      'begin',
      'begin',
      'commit',
      'commit',
      'commitOwn',
      'follow',
      'follow',
      'read',
      'read',
    ),
    n: fc.nat(50),
    pod: fc.nat(1),
    limit: fc.integer({ min: 1, max: 6 }),
    perStep: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 300 }), (steps) => {
      const pods = [new Pod(), new Pod()] as const;
      for (const { fleet } of pods) {
        for (let id = 1; id <= DEVICES; id++)
          fleet.putDevice(fieldsAt(id, WORLD_IDS[id % 2] as number, 0), 1);
      }
      let nextXid = 2;
      const open = new Map<number, { readonly deviceId: number; readonly kind: Kind }>();
      const done: Transaction[] = [];
      const devices = new Map(
        Array.from({ length: DEVICES }, (_, n) => [
          n + 1,
          { worldId: WORLD_IDS[(n + 1) % 2] as number, name: 0, position: 0 },
        ]),
      );
      let revision = 0;
      const reader = { read: null as ReturnType<typeof firstRead> | null, states: new Map<string, State>() };
      const present = () => {
        const running = [...open.keys()].sort((a, b) => a - b);
        return new Snapshot(running[0] ?? nextXid, nextXid, running);
      };
      const follow = (pod: Pod) => {
        const seen = present();
        for (const change of done)
          if (seen.sees(change.xid) && !pod.followed.sees(change.xid)) apply(pod, change);
        pod.followed = seen.within(SNAPSHOT_MAX_BYTES);
        for (const xid of pod.own) if (pod.followed.sees(xid)) pod.own.delete(xid);
      };
      const commit = (n: number, isWanted = (_: Kind) => true): Transaction | null => {
        const xids = [...open].filter(([, { kind }]) => isWanted(kind)).map(([xid]) => xid);
        const xid = xids[n % Math.max(1, xids.length)];
        if (xid === undefined) return null;
        const { deviceId, kind } = open.get(xid) as { deviceId: number; kind: Kind };
        open.delete(xid);
        const device = devices.get(deviceId) as { worldId: number; name: number; position: number };
        const transaction = { xid, kind, deviceId, revision: ++revision, fromWorldId: device.worldId };
        if (kind === 'delete') devices.delete(deviceId);
        else if (kind === 'position') device.position = revision;
        else device.name = revision;
        if (kind === 'world') device.worldId = 3 - device.worldId;
        done.push(transaction);
        return transaction;
      };
      const begin = (pod: Pod, limit: number, perStep: number): Reading => {
        const place = reader.read ?? firstRead(pod.followed);
        if (!isCurrent(pod, place)) follow(pod);
        return { limit, steps: readInSteps(() => pod, WORLD_IDS, place, limit, perStep) };
      };
      /** Null while the page is being read; else whether more follows. */
      const goOn = ({ limit, steps }: Reading): boolean | null => {
        const step = steps.next();
        if (step.done !== true) return null;
        const page = step.value as DevicesPage;
        assert.ok(page.items.length <= limit);
        const imeis = page.items.map((item) => (item.device === null ? item.imei : item.device.imei));
        assert.equal(new Set(imeis).size, imeis.length, 'a device stands once on a page');
        for (const item of page.items) {
          if (item.device === null) {
            reader.states.delete(item.imei);
            continue;
          }
          const { imei, name } = item.device.fields;
          const state = [Number(name), item.device.position?.recordedAtMs ?? 0] as const;
          const before = reader.states.get(imei) ?? [0, 0];
          assert.ok(state[0] >= before[0] && state[1] >= before[1], 'no answer is older than its cursor');
          reader.states.set(imei, state);
        }
        reader.read = page.read;
        return page.hasMore;
      };
      const read = (pod: Pod, limit: number): boolean => {
        const reading = begin(pod, limit, 1);
        for (;;) {
          const hasMore = goOn(reading);
          if (hasMore !== null) return hasMore;
        }
      };
      let reading: Reading | null = null;
      for (const { kind, n, pod, limit, perStep } of steps) {
        const at = pods[pod] as Pod;
        // A device is locked by one transaction at a time.
        const deviceId = 1 + (n % DEVICES);
        const isFree =
          devices.has(deviceId) && ![...open.values()].some((other) => other.deviceId === deviceId);
        if (kind === 'begin' && isFree)
          open.set(nextXid++, { deviceId, kind: KINDS[n % KINDS.length] as Kind });
        else if (kind === 'commit') commit(n);
        else if (kind === 'commitOwn') {
          const own = commit(n, (kind) => kind === 'position');
          if (own !== null) {
            apply(at, own);
            at.own.add(own.xid);
          }
        } else if (kind === 'follow') follow(at);
        else if (kind === 'read') {
          reading ??= begin(at, limit, perStep);
          if (goOn(reading) !== null) reading = null;
        }
      }
      while (reading !== null && goOn(reading) === null);
      while (commit(0) !== null);
      for (const pod of pods) follow(pod);
      let rounds = 0;
      for (let n = 0; read(pods[n % 2] as Pod, 1); n++) assert.ok(++rounds < 100, 'a round ends');
      const expected = [...devices].map(
        ([id, { name, position }]) => [imeiOf(id), [name, position]] as const,
      );
      assert.deepEqual(new Map([...reader.states].sort()), new Map(expected));
    }),
    { seed: 15, numRuns: runs(250) },
  );
});

describe('a page that is read in steps', () => {
  const DEVICES = 2_010;
  const filled = () => {
    const pod = new Pod();
    for (let id = 1; id <= DEVICES; id++) pod.fleet.putDevice(fieldsAt(id, 1, 0), 1);
    pod.followed = new Snapshot(2, 2, []);
    for (const xid of [5, 6]) pod.own.add(xid);
    return pod;
  };

  test('shows devices as they were when they were read, a thousand at a time', () => {
    const pod = filled();
    const steps = readInSteps(() => pod, [1], firstRead(pod.followed), DEVICES);
    steps.next();
    for (const id of [1, 1_000, 1_001, DEVICES]) apply(pod, edit(id));
    steps.next();
    for (const id of [1_002, DEVICES]) apply(pod, { ...edit(id), revision: 6, xid: 6 });
    const { value: page } = steps.next();
    const names = page?.items.map(({ device }) => device?.fields.name);
    assert.equal(names?.length, DEVICES);
    assert.deepEqual(
      [1, 1_000, 1_001, 1_002, DEVICES].map((id) => names?.[id - 1]),
      ['0', '0', '5', '0', '6'],
    );
  });

  test('ends where memory has become older, or is of another server', () => {
    const pod = filled();
    const older = filled();
    older.followed = new Snapshot(1, 1, []);
    for (const later of [older, null]) {
      let view: Pod | null = pod;
      const steps = readInSteps(() => view, [1], firstRead(pod.followed), DEVICES);
      steps.next();
      view = later;
      const { value: page } = steps.next();
      assert.deepEqual([page?.items.length, page?.hasMore], [1_000, true]);
    }
  });

  const edit = (deviceId: number): Transaction => ({
    xid: 5,
    kind: 'name',
    deviceId,
    revision: 5,
    fromWorldId: 1,
  });
});
