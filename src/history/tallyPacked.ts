import type { Steps } from '../lib/workTurns.ts';
import { unpackRowIf } from './packedRows.sql.ts';
import type { PresenceTally } from './presence/presence.ts';
import { pointsIn, type Stretch } from './stretches.sql.ts';

/**
 * Takes stretches of a device whose points are all packed. Returns how many points there are. A step unpacks one row. Throws
 * DamagedPoints.
 */
export function* tallyPacked(tally: PresenceTally, stretches: readonly Stretch[]): Steps<number> {
  let count = 0;
  for (const stretch of stretches) {
    tally.interrupt();
    for (const row of stretch.packed) {
      const columns = unpackRowIf(row, (lats, lngs) => tally.wants(lats, lngs));
      if (columns === null) tally.interrupt();
      else yield* tally.take(pointsIn(columns, stretch, 'place'));
      count += row.count;
      yield;
    }
  }
  return count;
}
