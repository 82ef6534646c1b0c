import type { BenchCase, Row } from '../../benchCase.ts';
import { comparePositions } from '../../contenders/comparePositions.ts';
import { compareCuts, compareEdges } from '../../contenders/compareRings.ts';

const DEVICES = [10_000, 100_000, 1_000_000];
const SMOKE_DEVICES = [1_000];
const VERTICES = [20, 200, 2_000];
const SMOKE_VERTICES = [20];
const ROUNDS = 5;
/** Of the usual nine seconds, so that about sixty measurements take a few minutes. */
const SECONDS_SHARE = 1 / 6;
const SMOKE_SECONDS = 0.01;

export const bench: BenchCase = {
  about: 'our indexes and our cut at 180° against KDBush, Flatbush, polygon-clipping and polyclip-ts',
  run: async ({ smoke, seconds, sizes, say }) => {
    const effort = { rounds: smoke ? 1 : ROUNDS, seconds: smoke ? SMOKE_SECONDS : seconds * SECONDS_SHARE };
    const devices = sizes ?? (smoke ? SMOKE_DEVICES : DEVICES);
    const vertices = smoke ? SMOKE_VERTICES : VERTICES;
    const rows: Row[] = [];
    const metrics: Record<string, number> = {};
    const notes: string[] = [];
    // A ratio is the contender's time divided by ours: the least of all sizes counts.
    const add = (compared: { rows: Row[]; ratios: Readonly<Record<string, number>> }) => {
      rows.push(...compared.rows);
      for (const [name, ratio] of Object.entries(compared.ratios)) {
        metrics[name] = Math.min(metrics[name] ?? Infinity, ratio);
      }
    };
    for (const size of devices.toReversed()) {
      say(`${size} devices`);
      const compared = comparePositions(size, effort);
      add(compared);
      const { wrongPercent, bytesPerDevice } = compared;
      metrics['geokdbush_wrong_percent'] = Math.max(
        metrics['geokdbush_wrong_percent'] ?? 0,
        wrongPercent.plain,
      );
      notes.push(
        `Of ${size} devices, geokdbush names one that is not the nearest in ${wrongPercent.plain.toFixed(2)} % of ` +
          `the answers, and in ${wrongPercent.ranked.toFixed(2)} % with k + 4 ranked again. Memory for each device: ` +
          `${bytesPerDevice.ours.toFixed(0)} bytes in ours, ${bytesPerDevice.kdbush.toFixed(0)} in KDBush.`,
      );
    }
    for (const count of vertices.toReversed()) {
      say(`${count} vertices`);
      add(compareEdges(count, effort));
      add(compareCuts(count, effort));
    }
    const size = `${devices.join(', ')} devices; polygons of ${vertices.join(', ')} vertices`;
    return { kind: 'measured', size, rows, metrics, notes };
  },
};
