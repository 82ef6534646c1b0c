import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Keyring } from '../../src/access/authorizer.ts';
import type { LogFollower } from '../../src/changelog/appliedTransactions.memory.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import type { LiveChunk } from '../../src/http/answer.ts';
import { DeadlineExceeded } from '../../src/lib/time.ts';
import type { ShareState } from '../../src/shares/share.ts';
import { SharedFleet } from '../../src/shares/sharedFleet.ts';
import { ShareStreams } from '../../src/shares/shareStreams.ts';
import { fieldsOf } from '../support/devices.ts';
import { FakeReader } from '../support/feeds/memoryStreams.ts';
import { manualClock } from '../support/manualClock.ts';
import { waitFor } from '../support/waitFor.ts';
import { newTurns } from '../support/workTurns.ts';

const WORLD = 7;
const OF_SHARE = 1_000;
const OF_ACCOUNT = 2_000;

function shareOf(id: number, accountId: number): ShareState {
  const fingerprint = String(id).padStart(64, '0');
  const asked = { name: null, deviceIds: [1], delayMs: 0, hide: [], show: new Set(['name'] as const) };
  const worldIds = [WORLD];
  return { id, accountId, worldIds, fingerprint, ...asked, expiresAtMs: Infinity, hasEnded: false };
}

/** The streams of some shares of one vehicle, without Postgres. */
function openStreams(t: TestContext, all: readonly ShareState[]) {
  const fleet = new Fleet();
  fleet.putDevice(fieldsOf({ id: 1, worldId: WORLD, name: 'Van' }), 5);
  const shares = new Keyring<ShareState>();
  for (const share of all) shares.put(share.fingerprint, share, shares.epoch);
  const clock = manualClock(Date.now());
  const turns = newTurns();
  const work = { steps: 0 };
  const once = turns.once.bind(turns);
  turns.once = (key, step) =>
    once(key, () => {
      work.steps++;
      return step();
    });
  const unused = () => assert.fail('everything is in memory');
  const follower = { applied: { writesLagMs: () => 0 } } as unknown as LogFollower;
  const shared = new SharedFleet({
    fleet,
    shares,
    service: null as never,
    reads: unused,
    turns,
    follower,
    clock,
  });
  // On a busy machine the turns of a thousand shares take longer than one may be looked at.
  const warn = ({ err }: { err?: unknown }) => assert.ok(err instanceof DeadlineExceeded);
  const streams = new ShareStreams({ shares, clock, turns, shared, log: { warn } });
  t.after(() => streams.close());
  const move = (lat: number): void => {
    const place = { lat, lng: 12, altitudeM: 0, speedKmh: 30, odometerKm: null };
    fleet.move(1, { ...place, recordedAtMs: clock(), movedAtMs: clock() });
    clock.set(clock() + 1_000);
  };
  const join = (share: ShareState) => {
    const body = streams.open(share);
    if (body === null) return null;
    const reader = new FakeReader();
    const { close } = body.attach(reader);
    t.after(close);
    return reader;
  };
  return { move, join, work, once };
}

const told = ({ text }: FakeReader, lat: number): number => text.split(`"latitude":${lat},`).length - 1;

describe('streams of shares', () => {
  test('a thousand readers of a share are each told of a change once; there is no room for another', async (t) => {
    const share = shareOf(1, 1);
    const { move, join } = openStreams(t, [share]);
    const readers = Array.from({ length: OF_SHARE - 1 }, () => join(share) ?? assert.fail('there is room'));
    for (const lat of [41.5, 41.6]) {
      move(lat);
      await waitFor(() => readers.every((reader) => told(reader, lat) === 1));
    }
    // The share is read once more, for the last one; the others know it.
    const last = join(share) as FakeReader;
    await waitFor(() => told(last, 41.6) === 1);
    assert.equal(join(share), null);
    assert.ok(readers.every((reader) => told(reader, 41.5) === 1 && told(reader, 41.6) === 1));
  });

  test('a change costs a thousand readers one text and one chunk', async (t) => {
    const share = shareOf(1, 1);
    const { move, join } = openStreams(t, [share]);
    const readers = Array.from({ length: OF_SHARE }, () => join(share) ?? assert.fail('there is room'));
    const chunks = new Map<FakeReader, LiveChunk[]>(readers.map((reader) => [reader, []]));
    for (const [reader, written] of chunks) {
      const write = reader.write.bind(reader);
      reader.write = (chunk) => {
        written.push(chunk);
        write(chunk);
      };
    }
    let made = 0;
    const { stringify } = JSON;
    t.mock.method(JSON, 'stringify', (...values: Parameters<typeof stringify>) => {
      if (values[0]?.place !== undefined) made++;
      return stringify(...values);
    });
    for (const lat of [41.5, 41.6]) {
      await waitFor(() => readers.every(({ text }) => text !== ''));
      for (const written of chunks.values()) written.length = 0;
      made = 0;
      move(lat);
      await waitFor(() => readers.every((reader) => told(reader, lat) === 1));
      assert.equal(made, 1, 'texts of the vehicle');
      assert.equal(new Set([...chunks.values()].flat()).size, 1, 'chunks');
    }
  });

  test('an account has room for two thousand, and leaves another account its own', (t) => {
    const [one, two, three, foreign] = [shareOf(1, 1), shareOf(2, 1), shareOf(3, 1), shareOf(4, 2)];
    const { join } = openStreams(t, [one, two, three, foreign]);
    for (let n = 0; n < OF_ACCOUNT; n++) assert.ok(join(n % 2 === 0 ? one : two));
    assert.equal(join(three), null);
    assert.ok(join(foreign));
  });

  test('the shares of one account are read in turns with the work of another', async (t) => {
    const all = Array.from({ length: OF_SHARE }, (_, n) => shareOf(n + 1, 1));
    const { join, work, once } = openStreams(t, all);
    const readers = all.map((share) => join(share) ?? assert.fail('there is room'));
    await new Promise((resolve) => setImmediate(resolve)); // all of them have asked for a turn
    const stepsBefore = await once(2, () => work.steps);
    assert.ok(stepsBefore < OF_SHARE / 2, `${stepsBefore} steps of ${OF_SHARE} shares came first`);
    const tellings = () => readers.filter(({ text }) => text !== '').length;
    await waitFor(() => tellings() === OF_SHARE);
  });

  test('a reader that takes nothing is cut off, and one beside it is not', async (t) => {
    const share = shareOf(1, 1);
    const { move, join } = openStreams(t, [share]);
    const [slow, quick] = [join(share) as FakeReader, join(share) as FakeReader];
    await waitFor(() => slow.text !== '' && quick.text !== '');
    slow.pendingBytes = 65 * 1_024;
    move(41.7);
    await waitFor(() => told(quick, 41.7) === 1 && slow.isEnded);
    assert.equal(told(slow, 41.7), 0);
    assert.equal(quick.isEnded, false);
  });
});
