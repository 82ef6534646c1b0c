import { distanceM } from '../../src/geo/wgs84.ts';
import { type AreaApi, areaApi } from '../support/http/areas.ts';
import type { OwnerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';

const SECOND_MS = 1_000;
const PROBE_DEG = 0.001;

/** A point as a story tells it: the seconds of the story, and how many metres north of the centre. */
export type ToldPoint = readonly [second: number, northM: number];

export const RADIUS_M = 500;

/** One device and a place of its own, in a day of its own. */
export class Stage {
  readonly imei: string;
  readonly center: { readonly lat: number; readonly lng: number };
  readonly owner: OwnerPod;
  readonly startMs: number;
  readonly api: AreaApi;

  constructor(owner: OwnerPod, n: number, startMs: number, key = owner.key) {
    this.owner = owner;
    this.imei = String(350_000_000_000_000 + n);
    this.center = { lat: -40 + n * 0.7, lng: 20 };
    this.startMs = startMs;
    this.api = areaApi(owner.pod, key);
  }

  at(second: number): string {
    return new Date(this.startMs + second * SECOND_MS).toISOString();
  }

  north(metres: number): { lat: number; lng: number } {
    const { lat, lng } = this.center;
    const degree = distanceM(lat, lng, lat + PROBE_DEG, lng) / PROBE_DEG;
    return { lat: lat + metres / degree, lng };
  }

  /** A circle of RADIUS_M around the centre, unless `body` says otherwise; its id. */
  area(body: object = {}): Promise<number> {
    return this.api.make({ name: 'Depot', type: 'circle', center: this.center, radius_m: RADIUS_M, ...body });
  }

  /** As if the area had been there for years. */
  async makeOld(areaId: number): Promise<void> {
    await this.owner.sql`update area set created_at = '2020-01-01' where id = ${areaId}`;
    await this.owner.sql`update area_revision set valid_from = '2020-01-01' where area_id = ${areaId}`;
  }

  /** Sends points in one request, in the order told. */
  async send(...points: readonly ToldPoint[]): Promise<void> {
    await this.owner.pod.points(
      points.map(([second, northM]) => {
        const { lat, lng } = this.north(northM);
        return { imei: this.imei, recorded_at: this.at(second), latitude: lat, longitude: lng };
      }),
    );
  }

  /** Asks about the seconds from `from` to `to` of the story. */
  ask(areaId: number, from = 0, to = 7_200, more = ''): Promise<Reply> {
    return this.api.get(
      `/${areaId}/explain?device=${this.imei}&from=${this.at(from)}&to=${this.at(to)}${more}`,
    );
  }

  /** The events of the same window, as their list has them. */
  async eventIds(areaId: number, from = 0, to = 7_200): Promise<number[]> {
    const { body } = await this.api.get(
      `/${areaId}/events?device=${this.imei}&from=${this.at(from)}&to=${this.at(to)}`,
    );
    return body.data.map(({ id }: { id: number }) => id).reverse();
  }
}
