import assert from 'node:assert/strict';
import { after, before, describe, mock, test } from 'node:test';
import type { Memory } from '../../src/coherence/applyChanges.ts';
import type { FillPorts } from '../../src/coherence/fillMemory.ts';
import type { DevicesRead } from '../../src/feeds/cursors.ts';
import { firstRead, readDevices } from '../../src/feeds/readDevices.ts';
import { Pace } from '../../src/lib/workTurns.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { allWorlds, dump, freshMemory, type MemoryPod, openMemoryPod } from './memoryPod.ts';
import { IMEIS, RandomChanges } from './randomChanges.ts';

const ROUNDS = IS_TORTURE ? 200 : 8;
const CHANGES = 12;
const EMAILS = ['a@example.com', 'b@example.com'] as const;
const AWAY_MS = 15 * 60_000;
const HOUR_MS = 3_600_000;
const ALL = { fromXid: 0, after: null, limit: 1_000, isWanted: () => true };

let sql: Sql;
let pod: MemoryPod;
let drop: () => Promise<void>;
let worldIds: readonly number[];
let aheadMs = 0;
let nextMs = Date.now() - HOUR_MS;
/** Runs after each step of work in memory. */
let onStep: () => Promise<void> = async () => undefined;

const turns: FillPorts['turns'] = {
  run: async (_key, steps) => {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      await onStep();
    }
  },
};

before(async () => {
  // Each device and each area is a step of its own.
  mock.method(Pace.prototype, 'isDue', () => true);
  const database = await createDatabase();
  drop = database.drop;
  sql = openSql(database.url, { maxConnections: 4, name: 'test' });
  const admin = adminOf(database.url);
  for (const email of EMAILS) await admin.account(email, { organization: 'Org' });
  await admin.importDevices(
    EMAILS[0],
    IMEIS.map((imei) => ({ imei })),
  );
  worldIds = await allWorlds(sql);
  pod = openMemoryPod(database.url, () => Date.now() + aheadMs, turns);
  await pod.follower.start();
  await pod.follower.stop();
});
after(async () => {
  mock.restoreAll();
  await pod.close();
  await sql.end();
  await drop();
});

/** Everything that a memory holds, and what it would tell a reader who knows nothing. */
function everything(memory: Memory) {
  const { fleet, areas, tenancy } = memory;
  return {
    worlds: dump(memory, worldIds),
    counts: [fleet.deviceCount, fleet.positionedCount, fleet.worldCount, areas.size, fleet.stays.total],
    external: [1, 2].flatMap((accountId) =>
      [0, 1, 2, 3].map((n) => areas.byExternalId(worldIds, accountId, `x${n}`)?.id),
    ),
    lost: [fleet.worldVersion(900), tenancy.watchersOf(950)],
    changes: worldIds.map((worldId) =>
      fleet.changed([worldId], ALL).map(({ device, ...change }) => ({ ...change, of: device?.imei })),
    ),
  };
}

/** What readers see of a device. */
interface Seen {
  readonly fields: string;
  readonly place: string;
}

function seen({ fleet }: Pick<Memory, 'fleet'>, imei: string, areaIds: readonly number[]): Seen {
  const device = fleet.anyDevice(imei);
  if (device === undefined) return { fields: 'none', place: 'none' };
  const isThis = (other: { readonly imei: string }): boolean => other.imei === imei;
  const all = { offset: 0, limit: 99 };
  const listed = worldIds.filter((worldId) => fleet.page([worldId], 0, 99).some(isThis));
  const near = worldIds.flatMap((worldId) => fleet.near([worldId], 0, 0, 99, Infinity) ?? []);
  const inside = areaIds.filter((areaId) =>
    worldIds.some((id) => fleet.occupants([id], areaId, 'all', all).page.some((one) => isThis(one.device))),
  );
  const times = near.filter((hit) => isThis(hit.device)).length;
  return {
    fields: JSON.stringify([device.fields, listed]),
    place: JSON.stringify([device.position, times, inside]),
  };
}

/** Follows the changes of some worlds along cursors, as a customer does. */
class Reader {
  readonly #worldIds: readonly number[];
  readonly #known = new Map<string, string>();
  #read: DevicesRead = firstRead(pod.follower.applied.followed);

  constructor(ids: readonly number[]) {
    this.#worldIds = ids;
  }

  /** Takes the next page; true when there is more. */
  next(): boolean {
    const { followed, own } = pod.follower.applied;
    const page = readDevices({ fleet: pod.fleet, followed, own }, this.#worldIds, this.#read, 3);
    for (const item of page.items) {
      if (item.device === null) this.#known.delete(item.imei);
      else this.#known.set(item.device.imei, JSON.stringify([item.device.fields, item.device.position]));
    }
    this.#read = page.read;
    return page.hasMore;
  }

  proveComplete(): void {
    while (this.next());
    const present = pod.fleet.page(this.#worldIds, 0, 99);
    const expected = present.map(({ imei, fields, position }) => [imei, JSON.stringify([fields, position])]);
    assert.deepEqual([...this.#known].sort(), expected.sort());
  }
}

let history = 1;

/** Lets the pod find another server, or the same one after a long absence. */
async function lose(isOther: boolean): Promise<void> {
  if (!isOther) {
    aheadMs += AWAY_MS;
    return;
  }
  history++;
  await sql.unsafe(
    `create or replace function server_history() returns text language sql as $$ select 'other/${history}' $$`,
  );
}

/** Returns after how many steps readers have looked. */
async function reloadOnce(seed: number, isOther: boolean): Promise<number> {
  const changes = new RandomChanges(sql, worldIds, seed, nextMs);
  const readers = worldIds.map((id) => new Reader([...new Set([id, changes.of(worldIds)])]));
  for (const reader of readers) reader.proveComplete();
  if (!isOther) {
    // Readers have not seen this yet when the reload begins.
    await changes.moveDevice();
    await pod.follower.catchUp();
  }
  for (let n = 0; n < CHANGES; n++) await changes.changePostgres(isOther);
  if (isOther) {
    for (let n = 0; n < CHANGES; n++) changes.changeMemory(pod);
    await changes.giveIdTwice(pod, 1_000 + seed);
  }
  const fresh = await freshMemory(sql);
  const areaIds = [pod, fresh].flatMap(({ areas }) => areas.page(worldIds, null, 0, 99).map(({ id }) => id));
  const allowed = new Map(
    IMEIS.map((imei) => [imei, [seen(pod, imei, areaIds), seen(fresh, imei, areaIds)]]),
  );
  const versions = worldIds.map((id) => pod.fleet.worldVersion(id));
  /** What this pod has stored during the reload. */
  const stored = new Map<string, string>();
  const store = async (imei: string, values = {}): Promise<string | undefined> => {
    const [outcome] = await pod.ingest.store([fixOf(imei, changes.nextMs(), values)]);
    if (outcome === 'accepted') stored.set(imei, seen(pod, imei, areaIds).place);
    return outcome as string;
  };
  const look = (): void => {
    for (const [imei, place] of stored)
      assert.equal(seen(pod, imei, areaIds).place, place, 'as it was stored');
    const isOver = worldIds.some((id, n) => pod.fleet.worldVersion(id) !== versions[n]);
    for (const [imei, both] of allowed) {
      // No version is raised before everything is there.
      const states = isOver ? both.slice(1) : both;
      const now = seen(pod, imei, areaIds);
      const isSeen = ({ fields, place }: Seen): boolean =>
        fields === now.fields && (place === now.place || stored.has(imei));
      assert.ok(
        states.some(isSeen),
        `${imei} is ${JSON.stringify(now)}, not one of ${JSON.stringify(states)}`,
      );
    }
  };
  let steps = 0;
  onStep = async () => {
    steps++;
    if (!isOther && changes.below(6) === 0) await store(changes.of(IMEIS), changes.of([{}, { lat: 1 }]));
    if (!isOther && steps === 5) {
      // Made after the snapshot, and known here by its point before the change log names it.
      const imei = String(352_000_000_000_000 + seed);
      await changes.createDevice(imei);
      assert.equal(await store(imei), 'accepted');
    }
    if (changes.below(8) === 0) readers.push(new Reader([changes.of(worldIds)]));
    for (const reader of readers) if (changes.below(2) === 0) reader.next();
    look();
  };
  await lose(isOther);
  try {
    await pod.follower.catchUp();
  } finally {
    onStep = async () => undefined;
  }
  assert.deepEqual(everything(pod), everything(await freshMemory(sql)));
  // Cursors of another server are refused unless it has all that they have seen.
  if (!isOther) for (const reader of readers) reader.proveComplete();
  nextMs = changes.nextMs();
  return steps;
}

describe('a reload makes memory what Postgres has, whatever it held before, and readers see each device as it was or is', () => {
  for (const isOther of [false, true]) {
    const when = isOther
      ? 'on another server, with another history'
      : 'after a long absence, beside points that this pod takes';
    test(when, async () => {
      let steps = 0;
      for (let seed = 1; seed <= ROUNDS; seed++) steps += await reloadOnce(seed, isOther);
      assert.ok(steps > ROUNDS * 10, `readers looked after ${steps} steps`);
    });
  }
});
