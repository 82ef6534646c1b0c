import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseIsoMs } from '../../../src/lib/time.ts';

/** A folder with recordings and boundaries of municipalities, or undefined. */
export const DATA_FOLDER = process.env['FLEET_TEST_DATA'];

/** For the option `skip` of a test that needs the folder: why it cannot run, or false. */
export const skipWithoutData =
  DATA_FOLDER === undefined && 'FLEET_TEST_DATA names no folder with tracks.ndjson';

/** A recorded point, as POST /positions takes it. */
export interface Recorded {
  readonly imei: string;
  readonly recorded_at: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly altitude_m: number;
  readonly speed_kmh: number;
  readonly heading: number;
  readonly satellites: number;
}

export async function readData(file: string): Promise<string> {
  return readFile(join(DATA_FOLDER ?? '', file), 'utf8');
}

/** Four GPS recordings, by IMEI: a car, three hikers. They are years old. */
export async function readRecordings(): Promise<Map<string, Recorded[]>> {
  const lines = (await readData('tracks.ndjson')).trim().split('\n');
  return Map.groupBy(
    lines.map((line) => JSON.parse(line) as Recorded),
    ({ imei }) => imei,
  );
}

/** The recording moved in time as a whole, its spacing kept. */
export function endingAt(track: readonly Recorded[], endMs: number): Recorded[] {
  const times = track.map((point) => parseIsoMs(point.recorded_at) ?? Number.NaN);
  const shiftMs = endMs - Math.max(...times);
  return track.map((point, n) => ({
    ...point,
    recorded_at: new Date((times[n] as number) + shiftMs).toISOString(),
  }));
}
