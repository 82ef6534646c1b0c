import type { Steps } from '../../lib/workTurns.ts';
import type { PointColumns } from '../codec/pointColumns.ts';

/** Whose points are written. */
export interface ExportedDevice {
  readonly imei: string;
  readonly name: string | null;
}

/** Writes points as a file, page by page. Keeps no more than a page or a few of them. */
export interface HistoryEncoder {
  /** Hands over what the points become, in pieces. Some of it may come with a later page. */
  encode(page: PointColumns, take: (piece: Buffer) => void): Steps<void>;
  /** Hands over the rest of the file. */
  finish(take: (piece: Buffer) => void): Steps<void>;
}

/** A format of text: what stands before the points, each point, and what stands behind them. */
export interface TextFormat {
  readonly begin: string;
  readonly point: (page: PointColumns, n: number) => string;
  readonly end: () => string;
}

/** Points between two looks at the clock: a fraction of a millisecond. */
const POINTS_PER_STEP = 256;

export function textEncoder({ begin, point, end }: TextFormat): HistoryEncoder {
  let before = begin;
  return {
    *encode(page, take) {
      for (let n = 0; n < page.count; ) {
        let text = before;
        before = '';
        for (const to = Math.min(n + POINTS_PER_STEP, page.count); n < to; n++) text += point(page, n);
        take(Buffer.from(text));
        yield;
      }
    },
    // biome-ignore lint/correctness/useYield: it has no step but its last
    *finish(take) {
      take(Buffer.from(before + end()));
    },
  };
}
