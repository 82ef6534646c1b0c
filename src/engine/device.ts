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
