import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { html } from '../parts.ts';

/** Rows above and below those in sight, so that a quick scroll meets rows. */
const BESIDE = 8;
/** Rows that are added at a time while the list is scrolled: more make single frames longer, fewer cost more in all. */
const STEP = 4;
/** Rows of a page of the keyboard. */
const PAGE = 10;

/** What a row of a long list has to have. */
export interface RowOfList {
  /** Of the row itself: what readers of screens say of its place. */
  readonly place: object;
  /** Of the one link or button of the row. Tab stops at one row; the arrow keys, Home and End lead to the others. */
  readonly tabIndex: number;
}

interface LongListProps<T> {
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  /** A row: an `li`, or a `tr` in a body of a table. */
  readonly row: (item: T, of: RowOfList) => VNode;
  readonly as: 'ul' | 'tbody';
  readonly label?: string;
}

/**
 * A list of any length. All rows are of one height, by the style sheet. Those in sight are in the page, and the one that Tab
 * leads to, which keeps the focus wherever the list is scrolled.
 */
export function LongList<T>({ items, keyOf, row, as, label }: LongListProps<T>): VNode {
  const place = useRef<HTMLElement>(null);
  const [seen, setSeen] = useState<Seen>({ from: 0, to: 3 * BESIDE, rowPx: 0 });
  const [stop, setStop] = useState<{ key: string; at: number } | null>(null);
  const isFocusWanted = useRef(false);
  const stopAt = stop === null ? 0 : placeOf(stop, items, keyOf);

  const look = (): void => {
    const now = place.current === null ? null : seenOf(place.current);
    if (now !== null) setSeen((before) => (isSame(before, now) ? before : now));
  };
  useEffect(look); // when the browser has laid the list out: to ask before that would make it do so at once
  useLayoutEffect(() => {
    // Of the page, or of the panel that the list is in: the event of the panel is seen on its way down.
    const options = { capture: true, passive: true };
    addEventListener('scroll', look, options);
    addEventListener('resize', look);
    return () => {
      removeEventListener('scroll', look, options);
      removeEventListener('resize', look);
    };
  }, []);
  useLayoutEffect(() => {
    if (!isFocusWanted.current) return;
    isFocusWanted.current = false;
    place.current?.querySelector<HTMLElement>(`[data-at="${stopAt}"] :is(a, button)`)?.focus();
  });

  const stopBy = (at: number): void => {
    const item = items[at];
    if (item !== undefined) setStop({ key: keyOf(item), at });
  };
  const onFocusIn = ({ target }: FocusEvent): void => {
    const at = Number((target as Element).closest<HTMLElement>('[data-at]')?.dataset['at'] ?? -1);
    if (at !== stopAt || stop === null) stopBy(at);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const last = items.length - 1;
    const to = {
      ArrowDown: stopAt + 1,
      ArrowUp: stopAt - 1,
      PageDown: stopAt + PAGE,
      PageUp: stopAt - PAGE,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    isFocusWanted.current = true;
    stopBy(Math.max(0, Math.min(last, to)));
  };

  const parts = partsOf(items.length, seen, stopAt).map((part) => {
    if ('rows' in part) return html`<${GAP[as]} key=${part.key} rows=${part.rows} rowPx=${seen.rowPx} />`;
    const item = items[part.at] as T;
    const counted =
      as === 'ul'
        ? { 'aria-setsize': items.length, 'aria-posinset': part.at + 1 }
        : { 'aria-rowindex': part.at + 2 }; // below the row of headings
    return row(item, {
      place: { key: keyOf(item), 'data-at': part.at, ...counted },
      tabIndex: part.at === stopAt ? 0 : -1,
    });
  });
  return html`<${as} ref=${place} class=${as === 'ul' ? 'rows long' : 'long'} aria-label=${label} onFocusIn=${onFocusIn} onKeyDown=${onKeyDown}>${parts}<//>`;
}

interface Seen {
  /** The first row that is in the page, and the one after the last. */
  readonly from: number;
  readonly to: number;
  readonly rowPx: number;
}

/** By what the browser has laid out; null without a row. */
function seenOf(element: HTMLElement): Seen | null {
  const rowPx = element.querySelector('[data-at]')?.getBoundingClientRect().height ?? 0;
  if (rowPx === 0) return null;
  const { top } = element.getBoundingClientRect();
  const step = (rows: number): number => STEP * Math.floor(rows / STEP);
  const from = Math.max(0, step(-top / rowPx) - BESIDE);
  return { from, to: step((innerHeight - top) / rowPx) + STEP + BESIDE, rowPx };
}

function isSame(a: Seen, b: Seen): boolean {
  return a.from === b.from && a.to === b.to && a.rowPx === b.rowPx;
}

/** Where the item that Tab leads to is now; the first one when it is gone. */
function placeOf<T>(
  { key, at }: { key: string; at: number },
  items: readonly T[],
  keyOf: (item: T) => string,
): number {
  const item = items[at];
  if (item !== undefined && keyOf(item) === key) return at;
  return Math.max(
    0,
    items.findIndex((one) => keyOf(one) === key),
  );
}

type Part = { readonly at: number } | { readonly key: string; readonly rows: number };

/** Rows from top to bottom, and what is left out between them. */
export function partsOf(
  count: number,
  { from, to }: Pick<Seen, 'from' | 'to'>,
  stopAt: number,
): readonly Part[] {
  const first = Math.min(from, count);
  const end = Math.min(Math.max(to, first), count);
  const shown = Array.from({ length: end - first }, (_, n) => first + n);
  if (stopAt < first && stopAt < count) shown.unshift(stopAt);
  if (stopAt >= end && stopAt < count) shown.push(stopAt);
  const parts: Part[] = [];
  let next = 0;
  for (const at of [...shown, count]) {
    if (at > next)
      parts.push({
        key: `gap ${next === 0 ? 'before' : at === count ? 'after' : 'within'}`,
        rows: at - next,
      });
    if (at < count) parts.push({ at });
    next = at + 1;
  }
  return parts;
}

interface Gap {
  readonly rows: number;
  readonly rowPx: number;
}

const GAP = {
  ul: ({ rows, rowPx }: Gap): VNode =>
    html`<li class="gap" aria-hidden="true" style=${{ height: `${rows * rowPx}px` }}></li>`,
  tbody: ({ rows, rowPx }: Gap): VNode =>
    html`<tr class="gap" aria-hidden="true"><td style=${{ height: `${rows * rowPx}px` }}></td></tr>`,
};
