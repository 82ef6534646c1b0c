import type { Keyring } from '../access/authorizer.ts';
import { fingerprint } from '../access/credentials.ts';
import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { FRESH_MS } from '../changelog/pods.sql.ts';
import type { Device } from '../devices/device.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { selectHistory } from '../history/newestPoints.sql.ts';
import { type Clock, DAY_MS, DeadlineExceeded, formatIso, MINUTE_MS, withDeadline } from '../lib/time.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import { isHidden, isOver, type ShareState } from './share.ts';
import { selectShareState } from './shares.sql.ts';

/** How long Postgres may take to say what a share is, or where its vehicles were. */
const READ_LIMIT_MS = 5_000;
const LOAD_TRIES = 10;
/** A view is made again after this time at the earliest; one that asks Postgres after the second, or when its worlds were edited. */
const VIEW_MS = 500;
const READ_VIEW_MS = 5_000;
/** A vehicle with a delay is shown at its newest point of that time, unless that point was older than this. */
const LOOK_BACK_MS = DAY_MS;
/** The way that a share shows: of the last half hour. */
const TRAIL_MS = 30 * MINUTE_MS;
const TRAIL_POINTS = 200;

export interface SharedFleetPorts {
  readonly fleet: Fleet;
  readonly shares: Keyring<ShareState>;
  readonly service: Sql;
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
  readonly follower: LogFollower;
  readonly clock: Clock;
}

/** A place of a vehicle as a share shows it. */
interface ShownPoint {
  readonly lat: number;
  readonly lng: number;
  readonly headingDeg: number;
  readonly speedKmh: number;
  readonly recordedAtMs: number;
}

/** A vehicle of a share on the wire. It has no IMEI: `id` counts the vehicles of the share. */
export interface SharedDevice {
  readonly id: number;
  readonly name?: string | null;
  readonly plate?: string | null;
  /** Where it is known, near a private place, or nowhere known. */
  readonly place: 'known' | 'private' | 'unknown';
  readonly location: {
    readonly latitude: number;
    readonly longitude: number;
    readonly heading: number;
    readonly recorded_at: string;
    readonly speed_kmh?: number;
  } | null;
  /** Its way in parts, between places that are hidden: [longitude, latitude]. */
  readonly trail?: readonly (readonly [number, number])[][];
}

interface View {
  readonly madeMs: number;
  /** Of the worlds of the share, as a sum. An edit raises it, such as the removal of a vehicle. */
  readonly version: number;
  readonly devices: Promise<readonly SharedDevice[]>;
}

/** What the links of shares show. A share is read from Postgres once, and kept until it changes. */
export class SharedFleet {
  readonly #ports: SharedFleetPorts;
  readonly #views = new WeakMap<ShareState, View>();

  constructor(ports: SharedFleetPorts) {
    this.#ports = ports;
  }

  /** The share of a token, unless there is none or it has ended. What cannot be a token is not looked up. */
  find(token: string): Promise<ShareState | 'unknown' | 'ended'> {
    return TOKEN.test(token) ? this.findByFingerprint(fingerprint(token)) : Promise.resolve('unknown');
  }

  async findByFingerprint(print: string): Promise<ShareState | 'unknown' | 'ended'> {
    const { shares, follower, clock } = this.#ports;
    // Where memory may have missed the end of a share, it first catches up.
    if (follower.applied.writesLagMs() > FRESH_MS)
      await withDeadline(follower.catchUp(), READ_LIMIT_MS, 'reading the change log');
    const share =
      shares.get(print) ?? (await withDeadline(this.#load(print), READ_LIMIT_MS, 'reading a share'));
    if (share === undefined) return 'unknown';
    return isOver(share, clock()) ? 'ended' : share;
  }

  async #load(print: string): Promise<ShareState | undefined> {
    const { shares, service } = this.#ports;
    for (let attempt = 0; attempt < LOAD_TRIES; attempt++) {
      const { epoch } = shares;
      const share = await selectShareState(service, print);
      if (share === undefined || shares.put(print, share, epoch)) return share;
    }
    throw new DeadlineExceeded('shares change faster than one can be read');
  }

  /** The vehicles of a share that its owner still has, in its order: one view for all who look at the same time. */
  devices(share: ShareState): Promise<readonly SharedDevice[]> {
    const { fleet, clock } = this.#ports;
    const nowMs = clock();
    const version = share.worldIds.reduce((sum, worldId) => sum + fleet.worldVersion(worldId), 0);
    const kept = this.#views.get(share);
    if (kept !== undefined) {
      const asksPostgres = share.delayMs > 0 || share.show.has('trail');
      const keptMs = asksPostgres && version === kept.version ? READ_VIEW_MS : VIEW_MS;
      if (nowMs < kept.madeMs + keptMs) return kept.devices;
    }
    const devices = withDeadline(this.#devicesNow(share, nowMs), READ_LIMIT_MS, 'reading a share');
    this.#views.set(share, { madeMs: nowMs, version, devices });
    return devices;
  }

  async #devicesNow(share: ShareState, nowMs: number): Promise<SharedDevice[]> {
    const { fleet, turns } = this.#ports;
    const { accountId, worldIds, deviceIds, delayMs } = share;
    const found: SharedDevice[] = [];
    for (const [n, id] of deviceIds.entries()) {
      // A vehicle with a long way and many hidden places takes a tenth of a millisecond; an account may share thousands.
      const known = await turns.once(accountId, () => {
        const [shown] = fleet.living.shown(worldIds, [id]);
        return shown === undefined ? null : { device: shown.device.taken(), headingDeg: shown.headingDeg };
      });
      if (known === null) continue;
      const { device, headingDeg } = known;
      const points = await this.#points(share, device.imei, nowMs);
      const point = delayMs > 0 ? (points.at(-1) ?? null) : latestOf(device, headingDeg);
      const make = () => sharedDevice(share, n + 1, device, point, points, nowMs);
      found.push(await turns.once(accountId, make));
    }
    return found;
  }

  /** The points of its trail, or the newest one before the delay, oldest first; none if the share needs none. */
  async #points(share: ShareState, imei: string, nowMs: number): Promise<ShownPoint[]> {
    const { accountId, worldIds, delayMs, show } = share;
    const hasTrail = show.has('trail');
    if (delayMs === 0 && !hasTrail) return [];
    const toMs = nowMs - delayMs;
    const window = { fromMs: toMs - LOOK_BACK_MS, toMs };
    const limit = hasTrail ? TRAIL_POINTS : 1;
    const sql = this.#ports.reads(accountId);
    const pieces = await selectHistory(sql, worldIds, imei, window, limit, nowMs);
    return pieces.toReversed().flatMap(({ count, lats, lngs, headings, speedsKmh, recordedAtMs }) =>
      Array.from({ length: count }, (_, n) => ({
        lat: lats[n] as number,
        lng: lngs[n] as number,
        headingDeg: headings[n] as number,
        speedKmh: speedsKmh[n] as number,
        recordedAtMs: recordedAtMs[n] as number,
      })),
    );
  }
}

/** `newShareToken` in the text of a link. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

function latestOf({ position }: Device, headingDeg: number): ShownPoint | null {
  if (position === null) return null;
  const { lat, lng, speedKmh, recordedAtMs } = position;
  return { lat, lng, headingDeg, speedKmh, recordedAtMs };
}

function sharedDevice(
  { show, hide }: ShareState,
  id: number,
  device: Device,
  point: ShownPoint | null,
  points: readonly ShownPoint[],
  nowMs: number,
): SharedDevice {
  const { name, plate } = device.fields;
  const isPrivate = point !== null && isHidden(hide, point.lat, point.lng);
  return {
    id,
    ...(show.has('name') && { name }),
    ...(show.has('plate') && { plate }),
    place: point === null ? 'unknown' : isPrivate ? 'private' : 'known',
    location: point === null || isPrivate ? null : locationOf(point, show.has('speed')),
    ...(show.has('trail') && { trail: trailOf(hide, points, (point?.recordedAtMs ?? nowMs) - TRAIL_MS) }),
  };
}

function locationOf({ lat, lng, headingDeg, speedKmh, recordedAtMs }: ShownPoint, showsSpeed: boolean) {
  return {
    latitude: lat,
    longitude: lng,
    heading: headingDeg,
    recorded_at: formatIso(recordedAtMs),
    ...(showsSpeed && { speed_kmh: speedKmh }),
  };
}

/** The way since a time without its hidden parts. */
function trailOf(hide: ShareState['hide'], points: readonly ShownPoint[], sinceMs: number) {
  const parts: [number, number][][] = [];
  let isOpen = false;
  for (const { lat, lng, recordedAtMs } of points) {
    if (recordedAtMs < sinceMs || isHidden(hide, lat, lng)) {
      isOpen = false;
      continue;
    }
    if (!isOpen) parts.push([]);
    parts.at(-1)?.push([lng, lat]);
    isOpen = true;
  }
  return parts;
}
