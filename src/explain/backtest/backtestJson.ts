import { formatIso } from '../../lib/isoTime.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { BacktestResult } from './backtests.ts';
import type { DwellTally, ReplayedEvent } from './dwellTally.ts';

/** Events between two pauses: some tenths of a millisecond. */
const EVENTS_PER_STEP = 100;

/** Wire form of what was found for one minimum stay, without its events. */
export function dwellView(tally: DwellTally, recorded: number | null) {
  const { dwellSeconds, entries, exits, devices, insideMs, same } = tally;
  return {
    dwell_seconds: dwellSeconds,
    entries,
    exits,
    devices,
    inside_seconds: insideMs / 1_000,
    ...(recorded === null ? {} : { against: { same, new: entries + exits - same, gone: recorded - same } }),
  };
}

/** An event in the form of those of an area, without an id: it did not happen. */
export function replayedEventView(
  { imei, direction, lat, lng, occurredAtMs }: ReplayedEvent,
  areaId: number | null,
) {
  return {
    area_id: areaId,
    device: imei,
    event: direction,
    position: { lat, lng },
    timestamp: formatIso(occurredAtMs),
  };
}

/** `data` as JSON text: an item for each of `dwellSeconds`, in this order. */
export function* backtestJson(
  { tallies, recorded }: Pick<BacktestResult, 'tallies' | 'recorded'>,
  dwellSeconds: readonly number[],
  areaId: number | null,
): Steps<string> {
  const items = new Map<number, string>();
  for (const tally of tallies) {
    const events: string[] = [];
    for (const event of tally.listed) {
      events.push(JSON.stringify(replayedEventView(event, areaId)));
      if (events.length % EVENTS_PER_STEP === 0) yield;
    }
    const counts = JSON.stringify(dwellView(tally, recorded)).slice(0, -1);
    items.set(tally.dwellSeconds, `${counts},"events":[${events.join(',')}]}`);
    yield;
  }
  return `[${dwellSeconds.map((each) => items.get(each)).join(',')}]`;
}
