import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../../src/lib/time.ts';
import { type NaiveEvent, NaiveReplay, ORGANIZATIONS } from '../../ingest/naiveReplay.ts';
import { areaApi } from '../http/areas.ts';
import type { PodAddress } from '../pod.ts';
import type { Admin } from '../postgres/admin.ts';
import { anyRoadArea, naiveArea, PLACES, placeAt } from './road.ts';

/** Worlds as the naive replay numbers them. */
export const ANNA = 1;
export const BEN = 2;
export const CARLA = 3;
export const ACME = ORGANIZATIONS;
export const MAILS = new Map([
  [ANNA, 'anna@example.com'],
  [BEN, 'ben@example.com'],
  [CARLA, 'carla@example.com'],
]);

export const imeiOf = (device: number): string => String(350_000_000_000_000 + device);

/** Accounts, keys and devices: a device for each of these worlds, so many times. */
const DEVICE_WORLDS = [ANNA, BEN, CARLA, ACME];
/** Who may move a device into the organization and out again. */
const OWNERS = [ANNA, BEN, CARLA, ANNA];

export async function castEdits(admin: Admin, devicesOfEach = 1): Promise<ReadonlyMap<number, string>> {
  const keys = new Map<number, string>();
  for (const [world, mail] of MAILS) {
    await admin.account(mail, world === CARLA ? {} : { organization: 'Acme' });
    keys.set(world, (await admin.key(mail)).key);
  }
  for (let n = 0; n < devicesOfEach * DEVICE_WORLDS.length; n++) {
    const options = DEVICE_WORLDS[n % DEVICE_WORLDS.length] === ACME ? ['--organization'] : [];
    await admin.device(ownerOf(n), imeiOf(n), ...options);
  }
  return keys;
}

function ownerOf(device: number): string {
  return MAILS.get(OWNERS[device % OWNERS.length] as number) as string;
}

/** A device in an area, in short. */
export interface RoadStay {
  readonly imei: string;
  readonly sinceMs: number;
  readonly enteredMs: number | null;
}

export type TimedEvent = NaiveEvent & { readonly imei: string; readonly occurredAtMs: number };

interface MadeArea {
  readonly id: number;
  readonly makerWorld: number;
}

/** Points, and writes of every kind, each through any of the pods; beside them the naive replay. */
export class RoadEdits {
  /** What must have been reported, in the order of production. */
  readonly events: TimedEvent[] = [];
  readonly #naive = new NaiveReplay();
  readonly #keys: ReadonlyMap<number, string>;
  /** Those that run now. */
  readonly #pods: () => readonly PodAddress[];
  readonly #admin: Admin;
  readonly #random: () => number;
  /** The world of each device. */
  readonly #worlds: number[];
  #areas: MadeArea[] = [];
  #clockMs = Date.now() - DAY_MS;
  #count = 0;

  constructor(
    pods: () => readonly PodAddress[],
    keys: ReadonlyMap<number, string>,
    admin: Admin,
    random: () => number,
    devicesOfEach = 1,
  ) {
    this.#pods = pods;
    this.#keys = keys;
    this.#admin = admin;
    this.#random = random;
    this.#worlds = Array.from({ length: devicesOfEach }, () => DEVICE_WORLDS).flat();
    this.#naive.organizationOf.set(ANNA, ACME).set(BEN, ACME);
  }

  async step(): Promise<void> {
    const dice = this.#random();
    if (dice < 0.6) await this.send(1);
    else if (dice < 0.74) await this.create();
    else if (dice < 0.84) await this.#change();
    else if (dice < 0.92) await this.#share();
    else if (dice < 0.96) await this.#remove();
    else await this.#join();
  }

  #oneOf<T>(values: readonly T[]): T | undefined {
    return values[Math.floor(this.#random() * values.length)];
  }

  #api(world: number) {
    return areaApi(this.#oneOf(this.#pods()) as PodAddress, this.#keys.get(world) ?? '');
  }

  /** Reports of so many devices, in one batch. It is sent again through another pod when one does not answer. */
  async send(devices: number): Promise<void> {
    const first = Math.floor(this.#random() * this.#worlds.length);
    const points = Array.from({ length: devices }, (_, n) => {
      this.#clockMs += 1_000 + Math.floor(this.#random() * 20_000);
      const device = (first + n) % this.#worlds.length;
      const place = placeAt(Math.floor(this.#random() * PLACES));
      return { device, place, recordedAtMs: this.#clockMs };
    });
    const batch = points.map(({ device, place, recordedAtMs }) => ({
      imei: imeiOf(device),
      recorded_at: recordedAtMs,
      ...place,
    }));
    await this.#deliver(batch);
    for (const { device, place, recordedAtMs } of points) {
      const fix = { lat: place.latitude, lng: place.longitude, recordedAtMs };
      const events = this.#naive.point(device, this.#worlds[device] as number, fix, () => undefined);
      const imei = imeiOf(device);
      this.events.push(...events.map((event) => ({ ...event, imei, occurredAtMs: recordedAtMs })));
    }
  }

  async #deliver(batch: readonly object[]): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#oneOf(this.#pods())?.points(batch);
        return;
      } catch (error) {
        if (attempt === 20) throw error;
        await sleep(20);
      }
    }
  }

  /** A device becomes the organization's, or private again. */
  async move(): Promise<void> {
    const device = Math.floor(this.#random() * this.#worlds.length);
    const owner = OWNERS[device % OWNERS.length] as number;
    if (!this.#naive.organizationOf.has(owner)) return;
    const organization = this.#worlds[device] !== ACME;
    await this.#admin.importDevices(ownerOf(device), [{ imei: imeiOf(device), organization }]);
    this.#worlds[device] = organization ? ACME : owner;
  }

  /** Everybody who sees an area, and the devices that they must see in it, longest stay first. */
  occupancy(): { viewer: number; areaId: number; stays: RoadStay[] }[] {
    const views: { viewer: number; areaId: number; stays: RoadStay[] }[] = [];
    for (const { id: areaId, worldId } of this.#naive.areas.values()) {
      for (const viewer of MAILS.keys()) {
        const seen = [viewer, this.#naive.organizationOf.get(viewer)];
        if (!seen.includes(worldId)) continue;
        const stays = this.#naive
          .staysIn(areaId)
          .filter(({ deviceId }) => seen.includes(this.#worlds[deviceId]))
          .map(({ deviceId, ...stay }) => ({ imei: imeiOf(deviceId), ...stay }))
          .sort((a, b) => a.sinceMs - b.sinceMs || (a.imei < b.imei ? -1 : 1));
        views.push({ viewer, areaId, stays });
      }
    }
    return views;
  }

  async create(): Promise<void> {
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
