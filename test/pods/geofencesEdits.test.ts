import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openSql } from '../../src/store/sql.ts';
import { type NaiveEvent, NaiveReplay, ORGANIZATIONS } from '../engine/naiveReplay.ts';
import { type Admin, adminOf } from '../support/admin.ts';
import { areaApi } from '../support/areas.ts';
import { dropBells } from '../support/bells.ts';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { anyRoadArea, naiveArea, PLACES, placeAt } from '../support/road.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';

const SEEDS = IS_TORTURE ? Array.from({ length: 10 }, (_, n) => (Date.now() % 100_000) + n) : [1, 2];
const STEPS = IS_TORTURE ? 400 : 160;
const DAY_MS = 86_400_000;
const imeiOf = (device: number): string => String(350_000_000_000_000 + device);

/** Worlds as the naive replay numbers them. */
const ANNA = 1;
const BEN = 2;
const CARLA = 3;
const ACME = ORGANIZATIONS;
const MAILS = new Map([
  [ANNA, 'anna@example.com'],
  [BEN, 'ben@example.com'],
  [CARLA, 'carla@example.com'],
]);
const DEVICE_WORLDS = [ANNA, BEN, CARLA, ACME];

type TimedEvent = NaiveEvent & { readonly imei: string; readonly occurredAtMs: number };

interface MadeArea {
  readonly id: number;
  readonly makerWorld: number;
}

/** Points, and writes of every kind, each through any of three pods; beside them the naive replay. */
class Edits {
  /** What must have been told, in the order of production. */
  readonly events: TimedEvent[] = [];
  readonly #naive = new NaiveReplay();
  readonly #keys: ReadonlyMap<number, string>;
  readonly #pods: readonly Pod[];
  readonly #admin: Admin;
  readonly #random: () => number;
  #areas: MadeArea[] = [];
  #clockMs = Date.now() - DAY_MS;
  #count = 0;

  constructor(pods: readonly Pod[], keys: ReadonlyMap<number, string>, admin: Admin, random: () => number) {
    this.#pods = pods;
    this.#keys = keys;
    this.#admin = admin;
    this.#random = random;
    this.#naive.organizationOf.set(ANNA, ACME).set(BEN, ACME);
  }

  async step(): Promise<void> {
    const dice = this.#random();
    if (dice < 0.6) await this.#send();
    else if (dice < 0.74) await this.#create();
    else if (dice < 0.84) await this.#change();
    else if (dice < 0.92) await this.#share();
    else if (dice < 0.96) await this.#remove();
    else await this.#join();
  }

  #oneOf<T>(values: readonly T[]): T | undefined {
    return values[Math.floor(this.#random() * values.length)];
  }

  #api(world: number) {
    return areaApi(this.#oneOf(this.#pods) as Pod, this.#keys.get(world) ?? '');
  }

  async #send(): Promise<void> {
    this.#clockMs += 1_000 + Math.floor(this.#random() * 20_000);
    const device = Math.floor(this.#random() * DEVICE_WORLDS.length);
    const imei = imeiOf(device);
    const place = placeAt(Math.floor(this.#random() * PLACES));
    await this.#oneOf(this.#pods)?.points([{ imei, recorded_at: this.#clockMs, ...place }]);
    const fix = { lat: place.latitude, lng: place.longitude, recordedAtMs: this.#clockMs };
    const told = this.#naive.point(device, DEVICE_WORLDS[device] as number, fix, () => undefined);
    this.events.push(...told.map((event) => ({ ...event, imei, occurredAtMs: this.#clockMs })));
  }

  async #create(): Promise<void> {
    const makerWorld = this.#oneOf([ANNA, BEN, CARLA]) as number;
    const area = anyRoadArea(`Area ${++this.#count}`, this.#random);
    const id = await this.#api(makerWorld).make(area.body);
    this.#areas.push({ id, makerWorld });
    this.#naive.areas.set(id, naiveArea(id, makerWorld, area));
  }

  /** An area that its maker sees: who left the organization left what was shared behind. */
  #editable(): MadeArea | undefined {
    const isSeen = ({ id, makerWorld }: MadeArea): boolean => {
      const { worldId } = this.#naive.areas.get(id) as { worldId: number };
      return worldId === makerWorld || this.#naive.organizationOf.get(makerWorld) === worldId;
    };
    return this.#oneOf(this.#areas.filter(isSeen));
  }

  async #change(): Promise<void> {
    const made = this.#editable();
    if (made === undefined) return;
    const area = anyRoadArea(`Area ${++this.#count}`, this.#random);
    const reply = await this.#api(made.makerWorld).patch(made.id, area.body);
    assert.equal(reply.status, 200, reply.text);
    const { worldId } = this.#naive.areas.get(made.id) as { worldId: number };
    this.#naive.areas.set(made.id, naiveArea(made.id, worldId, area));
  }

  async #share(): Promise<void> {
    const made = this.#editable();
    const home = made === undefined ? undefined : this.#naive.organizationOf.get(made.makerWorld);
    if (made === undefined || home === undefined) return;
    const shared = this.#random() < 0.6;
    await this.#admin.run(shared ? 'area:share' : 'area:unshare', '--id', String(made.id));
    (this.#naive.areas.get(made.id) as { worldId: number }).worldId = shared ? home : made.makerWorld;
  }

  async #remove(): Promise<void> {
    const made = this.#editable();
    if (made === undefined) return;
    assert.equal((await this.#api(made.makerWorld).remove(made.id)).status, 204);
    this.#areas = this.#areas.filter(({ id }) => id !== made.id);
    this.#naive.areas.delete(made.id);
  }

  async #join(): Promise<void> {
    const world = this.#oneOf([BEN, CARLA]) as number;
    const joins = !this.#naive.organizationOf.has(world);
    const organization = joins ? 'Acme' : 'none';
    await this.#admin.run(
      'account:update',
      '--email',
      MAILS.get(world) ?? '',
      '--organization',
      organization,
    );
    if (joins) this.#naive.organizationOf.set(world, ACME);
    else this.#naive.organizationOf.delete(world);
  }
}

describe('points and writes of every kind, one after the other, each through any of three pods', {
  skip: skipWithoutRedis(),
  timeout: IS_TORTURE ? 600_000 : 60_000,
}, () => {
  for (const seed of SEEDS) {
    test(`that hear no bell and do not look by themselves: exactly the events of a replay (seed ${seed})`, async (t) => {
      const { url } = await createDatabase(t);
      const redis = await startRedis(t);
      await dropBells(url, redis.url);
      t.mock.timers.enable({ apis: ['setInterval'] });
      const admin = adminOf(url, redis.url);
      const keys = new Map<number, string>();
      for (const [world, mail] of MAILS) {
        await admin.account(mail, world === CARLA ? {} : { organization: 'Acme' });
        keys.set(world, (await admin.key(mail)).key);
      }
      for (const [n, world] of DEVICE_WORLDS.entries()) {
        const options = world === ACME ? ['--organization'] : [];
        await admin.device(MAILS.get(world) ?? (MAILS.get(ANNA) as string), imeiOf(n), ...options);
      }
      const env = { ...NO_LIMITS, REDIS_URL: redis.url };
      const pods = await Promise.all([0, 1, 2].map(() => startPod(url, { t, env })));
      const edits = new Edits(pods, keys, admin, seededRandom(seed));
      for (let step = 0; step < STEPS; step++) await edits.step();
      assert.deepEqual(await storedEvents(url), edits.events.map(asStored));
      assert.ok(edits.events.length > 20, `only ${edits.events.length} events`);
    });
  }
});

/** All geofence events of a database, in the order of production. */
async function storedEvents(url: string): Promise<unknown[]> {
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  const rows = await sql`
    select e.device_imei as imei, e.area_id as "areaId", e.direction, e.occurred_at as "occurredAt",
           e.data->>'enteredAt' as "enteredAt", (e.data->'dwellSeconds')::int as "dwellSeconds",
           coalesce((select email from account a where a.world_id = e.world_id), 'everybody') as reader
    from fleet_event e where type = 'geofence' order by id`;
  await sql.end();
  return [...rows];
}

function asStored({ imei, areaId, direction, occurredAtMs, enteredAtMs, dwellSeconds, worldId }: TimedEvent) {
  return {
    imei,
    areaId,
    direction,
    occurredAt: new Date(occurredAtMs),
    enteredAt: new Date(enteredAtMs).toISOString(),
    dwellSeconds,
    reader: MAILS.get(worldId) ?? 'everybody',
  };
}
