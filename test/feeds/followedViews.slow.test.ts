import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Box } from '../../src/devices/living/boxRegion.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { imeiOf } from '../support/devices.ts';
import type { ChangedItem } from '../support/feeds/feedReader.ts';
import { StreamFollower } from '../support/feeds/followers.ts';
import { LateWriter } from '../support/feeds/lateWriter.ts';
import { ServicePods } from '../support/feeds/servicePods.ts';
import { type Asked, anyPlace, isInside, passes } from '../support/filteredFleet.ts';
import { PointStream } from '../support/ingest/pointStream.ts';
import { patienceMs } from '../support/patience.ts';
import { podAt } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { serviceEnv } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
/** After each round everybody must have caught up. */
const [ROUNDS, HOPS_PER_ROUND] = IS_TORTURE ? [20, 10] : [1, 3];
const [OWNER, MEMBER] = ['owner@example.com', 'member@example.com'];
/** How far behind the present the points of a sender are: most become too old for a filter soon after they are stored. */
const LAGS_MS = [0, 59_000, 599_000];
/** The last of them do so within this time. */
const AGING_MS = 1_000;
const DEVICES_PER_SENDER = 6;
const STAY_MAX_MS = 3_000;
/** Until something else ends a stream. */
const FOR_GOOD_MS = 86_400_000;
const NAMES_PER_ROUND = 1_000_000;

interface View extends Asked {
  readonly box?: Box;
}

const TOWN: Box = { west: 12.4, south: 41.8, east: 12.5, north: 42 };
const ACROSS_180: Box = { west: 179.95, south: -20, east: -179.95, north: 0 };
const VIEWS: readonly View[] = [
  { box: TOWN },
  { box: ACROSS_180 },
  { box: { west: -180, south: -20, east: 10, north: 90 } },
  { box: ACROSS_180, group: 'north', status: 'moving,parked' },
  { box: TOWN, max_age_seconds: '60' },
  { status: 'moving' },
  { status: 'offline,unknown' },
  { group: 'north,vans' },
];

function queryOf({ box, ...asked }: View): string {
  const bbox = box && [box.west, box.south, box.east, box.north].join();
  return `${new URLSearchParams({ ...(bbox && { bbox }), ...asked })}`;
}

/** A device as Postgres has it. */
interface StoredDevice {
  readonly imei: string;
  readonly name: string | null;
  readonly groups: readonly string[];
  readonly recorded_at: Date | null;
  readonly latitude: number;
  readonly longitude: number;
  readonly speed_kmh: number;
}

function isShown({ box, ...asked }: View, device: StoredDevice, nowMs: number): boolean {
  const { recorded_at, latitude: lat, longitude: lng, speed_kmh: speedKmh } = device;
  const position = recorded_at && { recordedAtMs: recorded_at.getTime(), lat, lng, speedKmh };
  const fields = { imei: device.imei, name: device.name, plate: null, groups: device.groups };
  return (box === undefined || isInside(box, position)) && passes({ fields, position }, asked, nowMs);
}

/** What can be told from a message alone: it does not say when it was written. */
function proveShown({ max_age_seconds: _, status, ...view }: View, item: ChangedItem): void {
  const { location } = item;
  const recorded_at = location && new Date(location.recorded_at);
  const { latitude = 0, longitude = 0, speed_kmh = 0 } = location ?? {};
  const device = { ...item, recorded_at, latitude, longitude, speed_kmh };
  assert.ok(isShown(view, device, 0), `${JSON.stringify(item)} in ${JSON.stringify(view)} (seed ${SEED})`);
  assert.ok(status === undefined || status.split(',').includes(item.status), `${item.status} of ${status}`);
}

const textOf = (device: Pick<StoredDevice, 'imei' | 'name' | 'groups'>, atMs?: number, lat = 0, lng = 0) =>
  [device.imei, device.name, device.groups, atMs, ...(atMs === undefined ? [] : [lat, lng])].join(' ');

/** What a follower holds, and what Postgres says that it has to hold. */
interface Compared {
  readonly devices: readonly [string[], string[]];
  readonly events: readonly [number[], number[]];
}

class Scene {
  readonly pods: ServicePods;
  readonly #sql: Sql;
  readonly #random = seededRandom(SEED);
  readonly #worldIds: readonly [number, number];
  readonly followers: readonly { email: string; view: View; follower: StreamFollower }[];
  /** Followers stay where they are. */
  isQuiet = false;
  #rounds = 0;

  private constructor(
    pods: ServicePods,
    sql: Sql,
    worldIds: readonly [number, number],
    keys: readonly Readonly<Record<'email' | 'key' | 'cursor', string>>[],
  ) {
    this.pods = pods;
    this.#sql = sql;
    this.#worldIds = worldIds;
    this.followers = keys.flatMap(({ email, key, cursor }, k) =>
      // In the short form the member has three.
      VIEWS.slice(0, IS_TORTURE || k === 0 ? VIEWS.length : 3).map((view, n) => {
        let hops = n + k;
        const nextPod = () => pods.apis[hops++ % 2] as string;
        // Every other one stays until a pod or its connection is gone.
        const stayMs = () => (this.isQuiet || n % 2 === k ? FOR_GOOD_MS : this.#random() ** 2 * STAY_MAX_MS);
        const followed = {
          query: queryOf(view),
          cursor,
          prove: (item: ChangedItem) => proveShown(view, item),
        };
        const name = `${followed.query} of ${email}`;
        return { email, view, follower: new StreamFollower(name, key, nextPod, stayMs, followed) };
      }),
    );
  }

  static async start(t: TestContext): Promise<Scene> {
    const [{ url }, redis] = await Promise.all([createDatabase(t), startRedis(t)]);
    const admin = adminOf(url, redis.url);
    await admin.account(OWNER, { organization: 'Haulage' });
    await admin.account(MEMBER, { organization: 'Haulage' });
    await admin.importDevices(
      OWNER,
      [...LAGS_MS.keys()].flatMap((n) =>
        [...sentOf(n), ownOf(n).moving].map((imei, m) => ({ imei, organization: m % 2 === 0 })),
      ),
    );
    const pods = await ServicePods.start(t, { ...serviceEnv(url), REDIS_URL: redis.url }, 2);
    const keys = await Promise.all(
      [OWNER, MEMBER].map(async (email) => {
        const { key } = await admin.key(email);
        const pod = podAt({ api: pods.apis[0] as string, ingest: '' });
        const { body } = await pod.get('/api/v3/events/feed', key);
        return { email, key, cursor: body.meta.cursor as string };
      }),
    );
    const sql = openSql(url, { maxConnections: 2 + LAGS_MS.length, name: 'test' });
    t.after(() => sql.end());
    const [worlds] = await sql<{ account: number; organization: number }[]>`
      select a.world_id as account, o.world_id as organization
      from account a join organization o on o.id = a.organization_id where a.email = ${OWNER}`;
    return new Scene(pods, sql, [worlds?.account ?? 0, worlds?.organization ?? 0], keys);
  }

  /** Everybody who writes; `sent` counts the points that were acknowledged. */
  startWriters(): { sent: () => number; running: Promise<unknown>; stop: () => Promise<unknown> } {
    const random = this.#random;
    const names = NAMES_PER_ROUND * this.#rounds++;
    const points = LAGS_MS.map((lagMs, n) => {
      const imeis = [...sentOf(n), ...Object.values(ownOf(n))];
      const timeOf = (lastMs: number) => Math.max(lastMs + 1, Date.now() - lagMs);
      return new PointStream(imeis, Math.floor(random() * 1e9), 0, placeOf, timeOf);
    });
    const lates = LAGS_MS.map((_, n) => {
      const seed = Math.floor(random() * 1e9);
      return new LateWriter(this.#sql, this.#worldIds, ownOf(n), seededRandom(seed), names);
    });
    const anyIngest = () => this.pods.ingests[Math.floor(random() * 2)] as string;
    const running = Promise.all([
      ...points.map((writer) => writer.run(anyIngest)),
      ...lates.map((writer) => writer.run()),
    ]);
    running.catch(() => undefined);
    const stop = () => {
      for (const writer of [...points, ...lates]) writer.stop();
      return running;
    };
    return { running, stop, sent: () => points.reduce((sum, each) => sum + each.acknowledged.length, 0) };
  }

  /** Sends readers of one pod, or all of them, to the other. */
  async hop(n: number): Promise<void> {
    const random = this.#random;
    const pod = IS_TORTURE ? Math.floor(random() * 2) : 0;
    const hops = [
      async () => {
        this.pods.pause(pod);
        await sleep(random() ** 4 * (IS_TORTURE ? 12_000 : 1_000));
        this.pods.resume(pod);
      },
      async () => {
        for (const { follower } of this.followers) follower.drop();
      },
      async () => {
        await this.pods.kill(pod);
        // In the short form this is the last thing that happens, and the other pod goes on alone.
        if (IS_TORTURE) await this.pods.start(pod);
      },
    ];
    // Each once, then as it comes.
    await hops[n < hops.length ? n : Math.floor(random() * hops.length)]?.();
  }

  /** Waits until everybody has everything, and a little longer for events that would come twice. */
  async prove(): Promise<void> {
    await sleep(AGING_MS);
    const untilMs = performance.now() + patienceMs(30_000);
    while (!(await this.#areCaughtUp()) && performance.now() < untilMs) await sleep(100);
    await sleep(300);
    for (const [n, { devices, events }] of (await this.#compared()).entries()) {
      const name = `${this.followers[n]?.follower.name} (seed ${SEED})`;
      assert.deepEqual(differences(...devices), NO_DIFFERENCES, `devices of ${name}`);
      assert.deepEqual(differences(...events), NO_DIFFERENCES, `events of ${name}`);
      assert.equal(events[0].length, events[1].length, `each event once: ${name}`);
    }
  }

  async #areCaughtUp(): Promise<boolean> {
    const compared = await this.#compared();
    return compared.every(({ devices, events }) =>
      [devices, events].every(([found, expected]) => JSON.stringify(found) === JSON.stringify(expected)),
    );
  }

  async #compared(): Promise<readonly Compared[]> {
    const tables = { [OWNER]: await this.#tablesOf(OWNER), [MEMBER]: await this.#tablesOf(MEMBER) };
    const nowMs = Date.now();
    return this.followers.map(({ email, view, follower: { collected } }) => {
      const { devices, events } = tables[email] ?? { devices: [], events: [] };
      const expected = devices
        .filter((device) => isShown(view, device, nowMs))
        .map((each) => textOf(each, each.recorded_at?.getTime(), each.latitude, each.longitude));
      const found = [...collected.devices.values()].map((item) => {
        const { recorded_at, latitude, longitude } = item.location ?? {};
        return textOf(
          item,
          recorded_at === undefined ? undefined : Date.parse(recorded_at),
          latitude,
          longitude,
        );
      });
      return {
        devices: [found.sort(), expected.sort()],
        events: [[...collected.events].sort((a, b) => a - b), events],
      };
    });
  }

  /** What a key of this account sees, as it is stored. */
  async #tablesOf(email: string) {
    const sql = this.#sql;
    const worlds = sql`
      select a.world_id from account a where a.email = ${email} union all
      select o.world_id from account a join organization o on o.id = a.organization_id where a.email = ${email}`;
    const events = await sql<{ id: number }[]>`
      select id from fleet_event where world_id in (${worlds}) order by id`;
    const devices = await sql<StoredDevice[]>`
      select d.imei, d.name, d.groups, s.recorded_at, s.latitude, s.longitude, s.speed_kmh
      from device d join device_state s on s.device_id = d.id where d.world_id in (${worlds})`;
    return { devices, events: events.map(({ id }) => id) };
  }
}

const sentOf = (n: number) => Array.from({ length: DEVICES_PER_SENDER }, (_, k) => imeiOf(100 * (n + 1) + k));
const ownOf = (n: number) => ({ moving: imeiOf(9_000 + n), fleeting: imeiOf(9_100 + n) });

function placeOf(_imei: string, random: () => number): { latitude: number; longitude: number } {
  const { lat, lng } = anyPlace(random);
  return { latitude: lat, longitude: lng };
}

const NO_DIFFERENCES = { missing: [], unexpected: [] };

/** The first of them. */
function differences<T>(found: readonly T[], expected: readonly T[]) {
  const [isFound, isExpected] = [new Set(found), new Set(expected)];
  return {
    missing: expected.filter((each) => !isFound.has(each)).slice(0, 20),
    unexpected: found.filter((each) => !isExpected.has(each)).slice(0, 20),
  };
}

describe('followers of boxes and filters', { skip: skipWithoutRedis() }, () => {
  test(`are shown what is in them and nothing else, and each event once, whichever pod is killed or stands still (seed ${SEED})`, async (t) => {
    const scene = await Scene.start(t);
    const { followers } = scene;
    const following = Promise.all(followers.map(({ follower }) => follower.run()));
    following.catch(() => undefined);
    t.after(() => {
      for (const { follower } of followers) follower.stop();
    });
    let hops = 0;
    const round = async () => {
      scene.isQuiet = false;
      const { sent, running, stop } = scene.startWriters();
      const hopping = async () => {
        for (let n = 0; n < HOPS_PER_ROUND; n++) {
          const wanted = sent() + (IS_TORTURE ? 40 : 10);
          await waitFor(() => sent() >= wanted);
          await scene.hop(hops++);
        }
      };
      await Promise.race([running, hopping()]);
      await stop();
      scene.isQuiet = true;
      await scene.prove();
    };
    for (let n = 0; n < ROUNDS; n++) await Promise.race([following, round()]);
    for (const { follower } of followers) follower.stop();
    await following;
    for (const { follower } of followers) {
      assert.ok(follower.opened > 1 && follower.collected.taken > 0, `${follower.name} followed`);
    }
    const left = followers.reduce((sum, { follower }) => sum + follower.collected.left, 0);
    assert.ok(left > 0, 'something has left what is shown');
  });
});
