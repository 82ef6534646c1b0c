import type { ChangePlace } from './firstChanges.ts';
import type { Changed } from './worldChanges.ts';

/**
 * Merges pages of the changes of two worlds. No two changes of the result have the same place, so that a page may end
 * behind any of them.
 */
export function mergeChanges(first: readonly Changed[], second: readonly Changed[]): Changed[] {
  const merged = [...first, ...second].sort(byPlace);
  return merged.filter((change, n) => !isSamePlace(change, merged[n - 1]));
}

/** A device that went from one world to the other has the same place in both: it comes before its removal. */
function byPlace(a: Changed, b: Changed): number {
  return a.xid - b.xid || a.id - b.id || Number(a.device === null) - Number(b.device === null);
}

function isSamePlace(a: ChangePlace, b: ChangePlace | undefined): boolean {
  return a.xid === b?.xid && a.id === b.id;
}
