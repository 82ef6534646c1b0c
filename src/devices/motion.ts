/** The newest evaluated position of a device. */
export interface LatestPosition {
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
  readonly altitudeM: number;
  readonly speedKmh: number;
  /** Last known reading; null when the device never sent one. */
  readonly odometerKm: number | null;
  /** Server time at which this position was accepted. */
  readonly movedAtMs: number;
}

/** What a device said last beside its position. */
export interface Motion {
  /** Degrees, clockwise from north. */
  readonly headingDeg: number;
  readonly ignition: boolean | null;
  /** Rises with each message that changed the state of the device: orders what messages say of one position. */
  readonly revision: number;
  /** The transaction that stored it. */
  readonly xid: number;
}

/** For a device that never moved, and where the motion does not matter. */
export const NO_MOTION: Motion = { headingDeg: 0, ignition: null, revision: 0, xid: 0 };

/** What an administrator says about a device. */
export interface DeviceFields {
  readonly id: number;
  readonly imei: string;
  readonly worldId: number;
  readonly name: string | null;
  readonly plate: string | null;
  readonly model: string | null;
  readonly groups: readonly string[];
  readonly editedAtMs: number;
}
