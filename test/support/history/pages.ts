import { emptyColumns, type PointColumns } from '../../../src/history/codec/pointColumns.ts';
import type { HistoryEncoder } from '../../../src/history/exportFile.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';

/** A point as the exports show it, times as epoch ms. */
export interface ExportPoint {
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
  readonly altitudeM: number;
  readonly speedKmh: number;
  readonly heading: number;
  readonly satellites: number;
  readonly odometerKm: number | null;
}

export function pageOf(points: readonly ExportPoint[]): PointColumns {
  const column = (name: keyof ExportPoint) => Float64Array.from(points, (each) => each[name] ?? Number.NaN);
  return {
    ...emptyColumns(points.length),
    ...{ recordedAtMs: column('recordedAtMs'), lats: column('lat'), lngs: column('lng') },
    ...{ altitudesM: column('altitudeM'), speedsKmh: column('speedKmh'), headings: column('heading') },
    ...{ satellites: column('satellites'), odometersKm: column('odometerKm') },
  };
}

/** The points of a device. */
export type ExportTrack = readonly [imei: string, points: readonly ExportPoint[]];

/** The file that an encoder makes of these points, cut into pages. */
export function fileOf(encoder: HistoryEncoder, tracks: readonly ExportTrack[], pagePoints: number): Buffer {
  const pieces: Buffer[] = [];
  const take = (piece: Buffer) => void pieces.push(piece);
  for (const [imei, points] of tracks) {
    for (let at = 0; at < points.length; at += pagePoints)
      inOneGo(encoder.encode(imei, pageOf(points.slice(at, at + pagePoints)), take));
  }
  inOneGo(encoder.finish(take));
  return Buffer.concat(pieces);
}
