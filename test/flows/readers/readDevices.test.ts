import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SNAPSHOT_MAX_BYTES } from '../../../src/feeds/readerCursor.ts';
import { Snapshot } from '../../../src/feeds/snapshot.ts';
import { firstRead, isCurrent, readDevices } from '../../../src/flows/readers/readDevices.ts';
import { Fleet } from '../../../src/memory/fleet.ts';

const WORLD_ID = 1;
const DEVICES = 12;
const imeiOf = (id: number) => String(350_000_000_000_000 + id);

/** One pod: it follows commits up to a snapshot, and knows its own before. */
class Pod {
  readonly fleet = new Fleet();
  readonly own = new Set<number>();
  followed = new Snapshot(1, 1, []);

  isOwn(xid: number): boolean {
    return this.own.has(xid);
  }
}

/**
 * Transactions take their number when they begin, change a device under its lock, and commit in any order; two pods learn
 * of them when they follow; one of them of its own at once. A reader goes from pod to pod with its cursor.
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
    limit: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 300 }), (steps) => {
      const pods = [new Pod(), new Pod()] as const;
      for (const { fleet } of pods) {
        for (let id = 1; id <= DEVICES; id++) {
          fleet.putDevice(
            {
              id,
              imei: imeiOf(id),
              worldId: WORLD_ID,
              name: null,
              plate: null,
              model: null,
              groups: [],
              editedAtMs: 0,
            },
            1,
          );
        }
      }
      let nextXid = 2;
      const open = new Map<number, number>();
      const done: { xid: number; deviceId: number; revision: number }[] = [];
      const revisions = new Map<number, number>();
      const reader = { read: null as ReturnType<typeof firstRead> | null, states: new Map<string, number>() };
      const present = () => {
        const running = [...open.keys()].sort((a, b) => a - b);
        return new Snapshot(running[0] ?? nextXid, nextXid, running);
      };
      const apply = (pod: Pod, { xid, deviceId, revision }: (typeof done)[number]) => {
        const position = {
          recordedAtMs: revision,
          lat: 0,
          lng: 0,
          altitudeM: 0,
          speedKmh: 0,
          odometerKm: null,
          movedAtMs: 0,
        };
        pod.fleet.move(deviceId, position, { headingDeg: 0, ignition: null, revision, xid });
      };
      const follow = (pod: Pod) => {
        const seen = present();
        for (const change of done)
          if (seen.sees(change.xid) && !pod.followed.sees(change.xid)) apply(pod, change);
        pod.followed = seen.within(SNAPSHOT_MAX_BYTES);
        for (const xid of pod.own) if (pod.followed.sees(xid)) pod.own.delete(xid);
      };
      const commit = (n: number): (typeof done)[number] | null => {
        const xid = [...open.keys()][n % Math.max(1, open.size)];
        if (xid === undefined) return null;
        const deviceId = open.get(xid) as number;
        open.delete(xid);
        const revision = (revisions.get(deviceId) ?? 0) + 1;
        revisions.set(deviceId, revision);
        const change = { xid, deviceId, revision };
        done.push(change);
        return change;
      };
      const read = (pod: Pod, limit: number): boolean => {
        const place = reader.read ?? firstRead(pod);
        if (!isCurrent(pod, place)) follow(pod);
        const page = readDevices(pod, [WORLD_ID], place, limit);
        for (const item of page.items) {
          assert.ok(item.device !== null);
          const revision = item.device.position?.recordedAtMs ?? 0;
          const { imei } = item.device.fields;
          assert.ok(revision >= (reader.states.get(imei) ?? 0), 'no answer is older than its cursor');
          reader.states.set(imei, revision);
        }
        reader.read = page.read;
        return page.hasMore;
      };
      for (const { kind, n, pod, limit } of steps) {
        const at = pods[pod] as Pod;
        // A device is locked by one transaction at a time.
        const deviceId = 1 + (n % DEVICES);
        if (kind === 'begin' && ![...open.values()].includes(deviceId)) open.set(nextXid++, deviceId);
        else if (kind === 'commit') commit(n);
        else if (kind === 'commitOwn') {
          const change = commit(n);
          if (change !== null) {
            apply(at, change);
            at.own.add(change.xid);
          }
        } else if (kind === 'follow') follow(at);
        else if (kind === 'read') read(at, limit);
      }
      while (commit(0) !== null);
      for (const pod of pods) follow(pod);
      let rounds = 0;
      for (let n = 0; read(pods[n % 2] as Pod, 3); n++) assert.ok(++rounds < 100, 'a round ends');
      const expected = Array.from(
        { length: DEVICES },
        (_, n) => [imeiOf(n + 1), revisions.get(n + 1) ?? 0] as const,
      );
      assert.deepEqual(new Map([...reader.states].sort()), new Map(expected));
    }),
    { seed: 15, numRuns: 1_000 },
  );
});
