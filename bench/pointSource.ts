import { createFleet, type SimulatedFleet, type SimulatedPoint } from '../src/cli/simulatedFleet.ts';
import { simulatedImei } from '../src/cli/simulatedImei.ts';

export interface PointSourceOptions {
  readonly devices: number;
  /** The points of one device always come in the same lane, in their order. */
  readonly lanes: number;
  /** Points of a batch, each of another device as long as the lane has so many. */
  readonly batch: number;
  /** Of the first points; times rise from here. */
  readonly startMs: number;
}

/** Between two points of a device. */
const STEP_MS = 10_000;
/** Of the town that all points come from. */
export const POINTS_CENTRE = { lat: 41.9, lng: 12.5 };
const SEED = 1;

/** Points of a simulated fleet in batches, never one twice. Equal options give equal points. */
export class PointSource {
  readonly #fleet: SimulatedFleet;
  readonly #options: PointSourceOptions;
  readonly #done: number[];

  constructor(options: PointSourceOptions) {
    const imeis = Array.from({ length: options.devices }, (_, index) => simulatedImei(index));
    this.#options = options;
    this.#fleet = createFleet({ imeis, seed: SEED, startMs: options.startMs, centre: POINTS_CENTRE });
    this.#done = Array.from({ length: options.lanes }, () => 0);
  }

  next(lane: number): SimulatedPoint[] {
    const { devices, lanes, batch, startMs } = this.#options;
    const own = Math.ceil((devices - lane) / lanes);
    const done = this.#done[lane] as number;
    this.#done[lane] = done + batch;
    return Array.from({ length: batch }, (_, n) => {
      const visit = Math.floor((done + n) / own);
      return this.#fleet.step(lane + lanes * ((done + n) % own), startMs + visit * STEP_MS);
    });
  }
}
