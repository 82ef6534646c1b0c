import {
  createFleet,
  type SimulatedFleet,
  type SimulatedPoint,
  simulatedImei,
} from '../../src/cli/simulate/simulatedFleet.ts';

export interface PointSourceOptions {
  readonly devices: number;
  /** The points of one device always come from the same sender, in order of time. */
  readonly senders: number;
  /** Points of a batch. No two are of one device if the sender has enough devices. */
  readonly batch: number;
  /** Of the first points; times rise from here. */
  readonly startMs: number;
}

/** Between two points of a device. */
const STEP_MS = 10_000;
/** The centre of the town that all points come from. */
export const POINTS_CENTRE = { lat: 41.9, lng: 12.5 };
const SEED = 1;

/** Points of a simulated fleet in batches, none twice. Equal options give equal points. */
export class PointSource {
  readonly #fleet: SimulatedFleet;
  readonly #options: PointSourceOptions;
  readonly #done: number[];

  constructor(options: PointSourceOptions) {
    const imeis = Array.from({ length: options.devices }, (_, index) => simulatedImei(index));
    this.#options = options;
    this.#fleet = createFleet({ imeis, seed: SEED, startMs: options.startMs, centre: POINTS_CENTRE });
    this.#done = Array.from({ length: options.senders }, () => 0);
  }

  next(sender: number): SimulatedPoint[] {
    const { devices, senders, batch, startMs } = this.#options;
    const own = Math.ceil((devices - sender) / senders);
    const done = this.#done[sender] as number;
    this.#done[sender] = done + batch;
    return Array.from({ length: batch }, (_, n) => {
      const visit = Math.floor((done + n) / own);
      return this.#fleet.step(sender + senders * ((done + n) % own), startMs + visit * STEP_MS);
    });
  }
}
