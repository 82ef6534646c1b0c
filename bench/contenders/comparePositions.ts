import { around } from 'geokdbush';
import KDBush from 'kdbush';
import type { NearHit } from '../../src/devices/index/nearestHits.ts';
import { PositionIndex } from '../../src/devices/index/positionIndex.ts';
import { distanceM } from '../../src/geo/wgs84.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import { SlotColumns } from '../../test/support/slotColumns.ts';
import type { Row } from '../benchCase.ts';
import {
  type Compared,
  type Contender,
  type Effort,
  measureAlternately,
  ratioTo,
} from '../measure/measureCalls.ts';
import { placesOf } from '../setup/places.ts';

/** Devices asked for: the usual number, and the most of a call. */
const LIMITS = [1, 50];
/** Percent of the devices that move between two groups of questions. */
const MOVED_PERCENT = [1, 10];
/** Questions between two groups of moves. */
const QUESTIONS = 1_000;
/** The farthest move in each direction: about 200 m, as a vehicle drives in ten seconds. */
const STEP_DEG = 0.002;
const PLACES = 4_096;
/** Latitude, longitude and the place in the index, which the owner of the slots keeps. */
const SLOT_BYTES = 20;

export interface ComparedPositions extends Compared {
  /** Of the answers for one device, the share in percent that names a device farther away. */
  readonly wrongPercent: { readonly plain: number; readonly ranked: number };
  readonly bytesPerDevice: { readonly ours: number; readonly kdbush: number };
}

/** Our position index and KDBush with geokdbush: the same devices around towns, the same questions. */
export function comparePositions(size: number, effort: Effort): ComparedPositions {
  const positions = placesOf('towns', 1, size);
  const ours = fillIndex(positions);
  const kdbush = new KdbushPositions(positions);
  const asked = placesOf('towns', 2, PLACES);
  const rows: Row[] = [];
  const ratios: Record<string, number> = {};
  const wrongPercent = countWrong(ours, kdbush, positions, asked);
  /** Keeps the rows. Returns how many times our processor time the others take. */
  const compare = (...contenders: Contender[]): number[] => {
    const [own, ...others] = measureAlternately(contenders, effort);
    rows.push(own!.row, ...others.map(({ row }) => row));
    return others.map((other) => ratioTo(own!, other));
  };
  for (const limit of LIMITS) {
    const ask = (search: (lat: number, lng: number, limit: number) => unknown) => (n: number) => {
      const at = 2 * (n % PLACES);
      return search(asked[at]!, asked[at + 1]!, limit);
    };
    const what = `k=${limit} of ${size}`;
    [ratios[`nearest_${limit}_vs_geokdbush`], ratios[`nearest_${limit}_vs_geokdbush_ranked`]] = compare(
      { what: `${what}: ours`, call: ask((...at) => ours.near(...at)) },
      { what: `${what}: geokdbush, by a sphere`, call: ask((...at) => kdbush.nearest(...at)) },
      { what: `${what}: geokdbush, k + 4 ranked`, call: ask((...at) => kdbush.nearestRanked(...at)) },
    ) as [number, number];
  }
  const ourBytes = ours.usage.bytes + SLOT_BYTES * size;
  const bytesPerDevice = { ours: ourBytes / size, kdbush: kdbush.bytes / size };
  ratios['memory_vs_kdbush'] = kdbush.bytes / ourBytes;
  for (const percent of MOVED_PERCENT) {
    const cycles = cyclesOf(ours, kdbush, positions, asked, Math.ceil((size * percent) / 100));
    const what = `${QUESTIONS} questions after ${percent} % of ${size} moved`;
    [ratios[`moved_${percent}_vs_geokdbush_ranked`]] = compare(
      { what: `${what}: ours`, call: cycles.ours, block: 1 },
      { what: `${what}: geokdbush, rebuilt, k + 4 ranked`, call: cycles.kdbush, block: 1 },
    ) as [number];
  }
  [ratios['fill_vs_kdbush']] = compare(
    { what: `all ${size} put in: ours`, call: () => fillIndex(positions).size, block: 1 },
    { what: `all ${size} put in: KDBush`, call: () => new KdbushPositions(positions).bytes, block: 1 },
  ) as [number];
  return { rows, ratios, wrongPercent, bytesPerDevice };
}

function cyclesOf(
  ours: PositionIndex,
  kdbush: KdbushPositions,
  positions: Float64Array,
  asked: Float64Array,
  moves: number,
) {
  const random = seededRandom(5);
  const moveSome = (moved: (at: number) => void): void => {
    for (let n = 0; n < moves; n++) {
      const at = 2 * Math.floor((random() * positions.length) / 2);
      positions[at] = Math.max(-90, Math.min(90, positions[at]! + STEP_DEG * (2 * random() - 1)));
      positions[at + 1] = Math.max(-180, Math.min(180, positions[at + 1]! + STEP_DEG * (2 * random() - 1)));
      moved(at);
    }
  };
  const askAll = (search: (lat: number, lng: number) => unknown[] | null): number => {
    let found = 0;
    for (let at = 0; at < 2 * QUESTIONS; at += 2) found += search(asked[at]!, asked[at + 1]!)?.length ?? 0;
    return found;
  };
  return {
    ours: () => {
      moveSome((at) => ours.put(at / 2, positions[at]!, positions[at + 1]!));
      return askAll((lat, lng) => ours.near(lat, lng, 1));
    },
    kdbush: () => {
      moveSome(() => undefined);
      kdbush.rebuild();
      return askAll((lat, lng) => kdbush.nearestRanked(lat, lng, 1));
    },
  };
}

function fillIndex(positions: Float64Array): PositionIndex {
  const index = new PositionIndex(new SlotColumns(positions.length / 2));
  for (let at = 0; at < positions.length; at += 2) index.put(at / 2, positions[at]!, positions[at + 1]!);
  return index;
}

function countWrong(
  ours: PositionIndex,
  kdbush: KdbushPositions,
  positions: Float64Array,
  asked: Float64Array,
): ComparedPositions['wrongPercent'] {
  let [plain, ranked] = [0, 0];
  for (let at = 0; at < asked.length; at += 2) {
    const [lat, lng] = [asked[at]!, asked[at + 1]!];
    const leastM = ours.near(lat, lng, 1)?.[0]?.distanceM;
    const [slot = 0] = kdbush.nearest(lat, lng, 1);
    if (distanceM(lat, lng, positions[2 * slot]!, positions[2 * slot + 1]!) !== leastM) plain++;
    if (kdbush.nearestRanked(lat, lng, 1)[0]?.distanceM !== leastM) ranked++;
  }
  return { plain: (100 * plain) / PLACES, ranked: (100 * ranked) / PLACES };
}

/** How many more than asked are fetched, to be ranked again by the exact distance. */
const OVER_FETCH = 4;

/**
 * The contender of PositionIndex: KDBush, searched by geokdbush. KDBush is static, so after moves it must be built
 * again. geokdbush ranks by the great circle of a sphere, which differs from the ellipsoid by up to 0.6 %.
 */
class KdbushPositions {
  /** Latitude and longitude of device n at 2n and 2n + 1. */
  readonly #positions: Float64Array;
  #index: KDBush;

  constructor(positions: Float64Array) {
    this.#positions = positions;
    this.#index = this.#build();
  }

  get bytes(): number {
    return this.#index.data.byteLength;
  }

  rebuild(): void {
    this.#index = this.#build();
  }

  nearest(lat: number, lng: number, limit: number): number[] {
    return around(this.#index, lng, lat, limit);
  }

  /** The devices nearest on the ellipsoid, if they are among the `limit + extra` nearest on a sphere. */
  nearestRanked(lat: number, lng: number, limit: number, extra = OVER_FETCH): NearHit[] {
    const hits = around(this.#index, lng, lat, limit + extra).map((slot) => {
      const position = 2 * slot;
      const [toLat, toLng] = [this.#positions[position]!, this.#positions[position + 1]!];
      return { slot, distanceM: distanceM(lat, lng, toLat, toLng) };
    });
    return hits.sort((a, b) => a.distanceM - b.distanceM || a.slot - b.slot).slice(0, limit);
  }

  #build(): KDBush {
    const index = new KDBush(this.#positions.length / 2);
    for (let at = 0; at < this.#positions.length; at += 2) {
      index.add(this.#positions[at + 1]!, this.#positions[at]!);
    }
    return index.finish();
  }
}
