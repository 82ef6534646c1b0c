/** One GPS fix as a device reported it, after parsing: every value is possible, the coordinates are never (0, 0). */
export interface Fix {
  readonly imei: string;
  readonly recordedAtMs: number;
  /**
   * The device's clock when it sent this, where that was later than the fix (a heartbeat that repeats its last one); it
   * may be wrong. null: not known.
   */
  readonly sentAtMs: number | null;
  readonly lat: number;
  readonly lng: number;
  readonly altitudeM: number;
  /** null: not reported, to be derived from the previous point. */
  readonly speedKmh: number | null;
  readonly heading: number;
  readonly satellites: number;
  readonly odometerKm: number | null;
  readonly ignition: boolean | null;
  readonly alarms: readonly string[];
  readonly rfid: string | null;
}
