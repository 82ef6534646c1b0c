import type { BacktestResult } from '../../types.ts';

type TriedEvent = BacktestResult['events'][number];

/** What another minimum stay would change. */
export interface DwellChanges {
  /** Events that would not happen any more, by time. */
  readonly gone: readonly TriedEvent[];
  /** Events that would happen as well, by time. */
  readonly added: readonly TriedEvent[];
  /** Entries of the same stays that would happen at another time, and by how much at most. */
  readonly moved: number;
  readonly movedMaxSeconds: number;
}

/** What is other with `tried` than with `present`; null: not all events of both are listed. */
export function dwellChanges(present: BacktestResult, tried: BacktestResult): DwellChanges | null {
  if (!isComplete(present) || !isComplete(tried)) return null;
  const before = staysOf(present.events);
  const after = staysOf(tried.events);
  const shifts: number[] = [];
  for (const [key, stay] of before) {
    const { entry } = after.get(key) ?? {};
    if (entry === undefined || stay.entry === undefined) continue;
    shifts.push(Math.abs(Date.parse(entry.timestamp) - Date.parse(stay.entry.timestamp)) / 1_000);
  }
  return {
    gone: onlyIn(before, after),
    added: onlyIn(after, before),
    moved: shifts.filter((seconds) => seconds > 0).length,
    movedMaxSeconds: Math.max(0, ...shifts),
  };
}

/** Whether all events are listed. */
export function isComplete({ entries, exits, events }: BacktestResult): boolean {
  return events.length === entries + exits;
}

/** One stay of a device. It has no entry if it began before the first event, and no exit while it lasts. */
interface Stay {
  entry?: TriedEvent;
  exit?: TriedEvent;
}

/** Stays by their ends: the minimum stay moves entries, and not exits. */
function staysOf(events: readonly TriedEvent[]): ReadonlyMap<string, Stay> {
  const stays = new Map<string, Stay>();
  const open = new Map<string, Stay>();
  for (const event of events) {
    const { device, timestamp } = event;
    if (event.event === 'entry') open.set(device, { entry: event });
    else {
      stays.set(`${device} ${timestamp}`, { ...open.get(device), exit: event });
      open.delete(device);
    }
  }
  for (const [device, stay] of open) stays.set(device, stay);
  return stays;
}

/** Entries and exits that the stays of `some` have, and those of `others` do not. */
function onlyIn(some: ReadonlyMap<string, Stay>, others: ReadonlyMap<string, Stay>): readonly TriedEvent[] {
  const events: TriedEvent[] = [];
  for (const [key, { entry, exit }] of some) {
    const other = others.get(key);
    if (entry !== undefined && other?.entry === undefined) events.push(entry);
    if (exit !== undefined && other === undefined) events.push(exit);
  }
  return events.sort((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp));
}
