/** A tenancy, areas and devices as plain tables; worlds below ORGANIZATIONS are accounts'. */
export const ORGANIZATIONS = 100;

export interface NaiveArea {
  id: number;
  worldId: number;
  dwellSeconds: number;
  contains(lat: number, lng: number): boolean;
}

export interface NaiveEvent {
  readonly areaId: number;
  readonly direction: 'entry' | 'exit';
  readonly enteredAtMs: number;
  readonly dwellSeconds: number;
  readonly worldId: number;
}

/** One point of a device as an area saw it. */
interface Sighting {
  readonly atMs: number;
  readonly inside: boolean;
  readonly dwellSeconds: number;
}

/**
 * What the document says, word by word and from the beginning each time: it keeps every point of every device with
 * each area that watched it, and no state of a stay. No index, no step.
 */
export class NaiveReplay {
  readonly areas = new Map<number, NaiveArea>();
  readonly organizationOf = new Map<number, number>();
  readonly #sightings = new Map<string, Sighting[]>();

  /** True when the owner of the area can see the device. */
  watches(areaWorldId: number, deviceWorldId: number): boolean {
    if (areaWorldId === deviceWorldId) return true;
    return areaWorldId < ORGANIZATIONS
      ? this.organizationOf.get(areaWorldId) === deviceWorldId
      : this.organizationOf.get(deviceWorldId) === areaWorldId;
  }

  /** The events of the newest point of a device; `onLost` is called with areas that watched it and do so no more. */
  point(
    deviceId: number,
    deviceWorldId: number,
    fix: { readonly lat: number; readonly lng: number; readonly recordedAtMs: number },
    onLost: (areaId: number) => void,
  ): NaiveEvent[] {
    const events: NaiveEvent[] = [];
    for (const key of [...this.#sightings.keys()]) {
      const [device, areaId] = key.split(' ').map(Number);
      const area = this.areas.get(areaId as number);
      if (device !== deviceId || (area !== undefined && this.watches(area.worldId, deviceWorldId))) continue;
      this.#sightings.delete(key);
      onLost(areaId as number);
    }
    for (const area of this.areas.values()) {
      if (!this.watches(area.worldId, deviceWorldId)) continue;
      const key = `${deviceId} ${area.id}`;
      const sightings = this.#sightings.get(key) ?? [];
      this.#sightings.set(key, sightings);
      const inside = area.contains(fix.lat, fix.lng);
      sightings.push({ atMs: fix.recordedAtMs, inside, dwellSeconds: area.dwellSeconds });
      const direction = directionOf(sightings);
      if (direction === null) continue;
      const worldId = area.worldId < ORGANIZATIONS ? area.worldId : deviceWorldId;
      const enteredAtMs = (visit(sightings, direction === 'exit' ? 1 : 0)[0] as Sighting).atMs;
      events.push({ areaId: area.id, direction, enteredAtMs, dwellSeconds: area.dwellSeconds, worldId });
    }
    const rank = (event: NaiveEvent): number => (event.direction === 'exit' ? 0 : 1e9) + event.areaId;
    return events.sort((a, b) => rank(a) - rank(b));
  }

  /** The visits of devices to an area that their newest points did not end. */
  staysIn(areaId: number): { deviceId: number; sinceMs: number; enteredMs: number | null }[] {
    return [...this.#sightings].flatMap(([key, sightings]) => {
      const [deviceId, area] = key.split(' ').map(Number) as [number, number];
      const points = visit(sightings, 0);
      const [first] = points;
      if (area !== areaId || first === undefined) return [];
      const entry = points.findIndex((_, n) => isLongEnough(points.slice(0, n + 1)));
      return [{ deviceId, sinceMs: first.atMs, enteredMs: points[entry]?.atMs ?? null }];
    });
  }
}

/** An exit after a visit that was long enough, an entry when the visit has just become so. */
function directionOf(sightings: readonly Sighting[]): 'entry' | 'exit' | null {
  const isInside = sightings.at(-1)?.inside === true;
  const wasConfirmed = isLongEnough(visit(sightings, 1));
  if (!isInside) return wasConfirmed ? 'exit' : null;
  return isLongEnough(visit(sightings, 0)) && !wasConfirmed ? 'entry' : null;
}

/** The unbroken inside points at the end, leaving out the last `without`. */
function visit(sightings: readonly Sighting[], without: number): readonly Sighting[] {
  const points = sightings.slice(0, sightings.length - without);
  return points.slice(points.findLastIndex((point) => !point.inside) + 1);
}

/** Some point of the visit came late enough for the threshold of its time. */
function isLongEnough(points: readonly Sighting[]): boolean {
  const [first] = points;
  return points.some((point) => point.atMs - (first as Sighting).atMs >= point.dwellSeconds * 1_000);
}
