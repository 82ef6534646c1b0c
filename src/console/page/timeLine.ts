import { counted, duration } from './amounts.ts';
import type { Explanation } from './types.ts';

/** A stretch of the window, in per cent of its length. */
interface Stretch {
  readonly x: number;
  readonly width: number;
}

export interface TimeLine {
  readonly visits: readonly (Stretch & {
    readonly outcome: string;
    /** Where the minimum stay is reached, or would have been; null: at once, or outside the window. */
    readonly threshold: number | null;
  })[];
  readonly gaps: readonly Stretch[];
  /** The same in words. */
  readonly text: string;
}

/** The picture of an explanation: what of the window (ISO 8601) was a visit, and what had no points. */
export function timeLine(
  { visits, gaps }: Pick<Explanation, 'visits' | 'gaps'>,
  window: { readonly from: string; readonly to: string },
  dwellSeconds: number,
): TimeLine {
  const fromMs = Date.parse(window.from);
  const lengthMs = Math.max(1, Date.parse(window.to) - fromMs);
  const share = (ms: number): number => ((ms - fromMs) / lengthMs) * 100;
  const within = (ms: number): number => Math.max(0, Math.min(100, share(ms)));
  const stretch = (from: string, to: string): Stretch => {
    const x = within(Date.parse(from));
    return { x, width: within(Date.parse(to)) - x };
  };
  const thresholdOf = (first: string): number | null => {
    const x = share(Date.parse(first) + dwellSeconds * 1_000);
    return dwellSeconds === 0 || x < 0 || x > 100 ? null : x;
  };
  return {
    visits: visits.map(({ first_inside_at, last_inside_at, outcome }) => ({
      ...stretch(first_inside_at, last_inside_at),
      outcome,
      threshold: thresholdOf(first_inside_at),
    })),
    gaps: gaps.map(({ from, to }) => stretch(from, to)),
    text: `Time line from ${timeOf(window.from)} to ${timeOf(window.to)}: ${counted(visits.length, 'visit')}, ${counted(gaps.length, 'gap')} without points${
      dwellSeconds === 0 ? '' : `, minimum stay ${duration(dwellSeconds)}`
    }. The list below has each of them.`,
  };
}

function timeOf(iso: string): string {
  return new Date(iso).toLocaleString();
}
