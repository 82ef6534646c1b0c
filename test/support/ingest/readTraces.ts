import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Way } from '../../../src/history/codec/way.ts';
import { derivedSpeedKmh } from '../../../src/ingest/deviceEvents.ts';
import { seededRandom } from '../seededRandom.ts';
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

/** Points of a vehicle: `count` if they come every `stepSeconds`. */
export interface Track {
  readonly firstMs: number;
  readonly count: number;
  readonly stepSeconds: number;
  readonly seed: number;
}

let traces: Promise<TraceFix[][]> | null = null;

/** What the recorded traces report, on the way, one after the other, until the time of the track is over. */
export async function* recordedReports({
  firstMs,
  count,
  stepSeconds,
  seed,
}: Track): AsyncGenerator<Report, void, undefined> {
  traces ??= readTraces(0);
  const all = await traces;
  const stepMs = stepSeconds * 1_000;
  const random = seededRandom(seed);
  let startMs = firstMs;
  for (let n = seed; startMs < firstMs + count * stepMs; n++) {
    const fixes = onTheWay(all[n % all.length] as TraceFix[], stepMs);
    const shiftMs = startMs - (fixes[0]?.recordedAtMs ?? 0);
    const trace = fixes.map((fix) => ({ ...fix, recordedAtMs: fix.recordedAtMs + shiftMs }));
    for (const report of reportsOf(trace, random)) {
      if ((report[0] as number) >= firstMs + count * stepMs) return;
      yield report;
    }
    startMs = (trace.at(-1)?.recordedAtMs ?? startMs) + stepMs;
  }
}

/** The fixes of a trace at least `stepMs` apart at which it moved, without the pauses between them. */
export function onTheWay(trace: readonly TraceFix[], stepMs: number): TraceFix[] {
  const taken: TraceFix[] = [];
  let before: TraceFix | undefined;
  let cutMs = 0;
  for (const fix of trace) {
    if (before !== undefined && fix.recordedAtMs - before.recordedAtMs < stepMs) continue;
    const speedKmh = before === undefined ? 0 : derivedSpeedKmh(before, fix);
    const tookMs = before === undefined ? 0 : fix.recordedAtMs - before.recordedAtMs;
    if (tookMs <= 3 * stepMs && speedKmh > 3.6)
      taken.push({ ...fix, speedKmh, recordedAtMs: fix.recordedAtMs - cutMs });
    else cutMs += tookMs;
    before = fix;
  }
  return taken;
}

/** All of `position` but the device, in its order. */
type Report = readonly (number | null)[];

/** A trace as a tracker reports it, received after 0.3 to 3 s. Altitudes and satellites wander; an odometer is not sent. */
export function* reportsOf(trace: readonly TraceFix[], random: () => number): Generator<Report> {
  const column = (of: (fix: TraceFix) => number) => Float64Array.from(trace, of);
  const times = column((fix) => fix.recordedAtMs);
  const lats = column((fix) => fix.lat);
  const lngs = column((fix) => fix.lng);
  const headings = new Way(times, lats, lngs).headings('before');
  let altitudeM = 60;
  for (const [n, { recordedAtMs, lat, lng, speedKmh }] of trace.entries()) {
    altitudeM += Math.round((random() - 0.5) * 4);
    const motion = [Math.round(speedKmh * 10) / 10, Math.round(headings[n] as number) % 360 || 0];
    const satellites = 7 + Math.floor(random() * 5);
    const receivedAtMs = recordedAtMs + 300 + Math.floor(random() * 2_700);
    yield [recordedAtMs, lat, lng, altitudeM, ...motion, satellites, null, receivedAtMs];
  }
}
