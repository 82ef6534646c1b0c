import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { derivedSpeedKmh } from '../../../src/ingest/deviceEvents.ts';
import { DATA_FOLDER } from './recordings.ts';

/** A fix of a trace, with the speed that ingest derives. */
export interface TraceFix {
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
  readonly speedKmh: number;
}

/** Recorded traces of taxis and people in San Francisco and Beijing, from a time on; the file says more. */
export async function readTraces(startMs: number): Promise<TraceFix[][]> {
  const file = gunzipSync(await readFile(join(DATA_FOLDER ?? '', 'traces.json.gz'))).toString();
  const { devices } = JSON.parse(file) as { devices: { dt: number[]; da: number[]; dl: number[] }[] };
  return devices.map(({ dt, da, dl }) => {
    const fixes: TraceFix[] = [];
    let [seconds, lat, lng] = [0, 0, 0];
    dt.forEach((stepSeconds, n) => {
      seconds += stepSeconds;
      lat += da[n] as number;
      lng += dl[n] as number;
      const fix = { recordedAtMs: startMs + seconds * 1_000, lat: lat / 1e6, lng: lng / 1e6 };
      const before = fixes.at(-1);
      fixes.push({ ...fix, speedKmh: before === undefined ? 0 : derivedSpeedKmh(before, fix) });
    });
    return fixes;
  });
}
