import type { Feed, RecordedCall, RecordedPage, RestState, Rule, Violation } from '../record.ts';
import { keyOf, type NewestTaken } from './points.ts';

/** Each follower began before the first point: what it took is all that there is, once. */
export function checkFeeds(calls: readonly RecordedCall[], rest: RestState, taken: NewestTaken): Violation[] {
  const pages = calls.filter((call): call is RecordedPage => call.kind === 'page' && call.status === 200);
  return [...Map.groupBy(pages, ({ feed, follower }) => `${feed} ${follower}`)].flatMap(([name, all]) => {
    const inOrder = all.toSorted((a, b) => a.endMs - b.endMs);
    return CHECKS[(all[0] as RecordedPage).feed](name, inOrder, rest, taken);
  });
}

type Check = (
  name: string,
  pages: readonly RecordedPage[],
  rest: RestState,
  taken: NewestTaken,
) => Violation[];

const CHECKS: Readonly<Record<Feed, Check>> = {
  events: (name, pages, { events }) => {
    const found = pages.flatMap((page) => page.events);
    return [
      ...differences(
        name,
        found.map(String),
        events.map(({ id }) => String(id)),
      ),
      ...checkDeviceOrder(name, found, events),
    ];
  },
  points: (name, pages, { points }) =>
    differences(name, pages.flatMap((page) => page.points).map(keyOf), points.map(keyOf)),
  devices: checkDevices,
};

function differences(name: string, found: readonly string[], expected: readonly string[]): Violation[] {
  const [isFound, isExpected] = [new Set(found), new Set(expected)];
  const named = (rule: Rule, items: readonly string[]): Violation[] =>
    items.length === 0
      ? []
      : [{ rule, message: `${name}: ${items.length} of ${expected.length}, the first is ${items[0]}` }];
  const seen = new Set<string>();
  const repeated = found.filter((item) => seen.size === seen.add(item).size);
  return [
    ...named(
      'a feed has no gap',
      expected.filter((item) => !isFound.has(item)),
    ),
    ...named('a feed repeats nothing', repeated),
    ...named(
      'nothing is stored that nobody sent',
      found.filter((item) => !isExpected.has(item)),
    ),
  ];
}

function checkDeviceOrder(name: string, found: readonly number[], events: RestState['events']): Violation[] {
  const deviceOf = new Map(events.map(({ id, imei }) => [id, imei]));
  const newest = new Map<string, number>();
  for (const id of found) {
    const imei = deviceOf.get(id) ?? '';
    const before = newest.get(imei) ?? 0;
    if (id < before)
      return [
        {
          rule: 'a feed keeps the order of a device',
          message: `${name}: ${id} of ${imei} comes after ${before}`,
        },
      ];
    newest.set(imei, id);
  }
  return [];
}

/**
 * A feed of states: no page is older than one before it, the last page of several is as new as the pod that gave it, and in
 * the end everything is there.
 */
function checkDevices(
  name: string,
  pages: readonly RecordedPage[],
  rest: RestState,
  taken: NewestTaken,
): Violation[] {
  const rule = 'a feed of devices is as new as its pod and never goes back';
  const held = new Map<string, number | null>();
  for (const { devices, isLast, process, beginMs } of pages) {
    const at = `${name}, asked process ${process} at ${Math.round(beginMs)} ms`;
    for (const { imei, atMs } of devices) {
      const before = held.get(imei) ?? null;
      if (before !== null && (atMs === null || atMs < before))
        return [{ rule, message: `${at}: ${imei} is at ${atMs}, and was at ${before}` }];
      held.set(imei, atMs);
    }
    if (!isLast || process === null) continue;
    for (const [imei, least] of taken.of(process, beginMs)) {
      if ((held.get(imei) ?? -Infinity) < least)
        return [{ rule, message: `${at}: ${imei} is at ${held.get(imei)}, and the pod had taken ${least}` }];
    }
  }
  const expected = new Map<string, number>();
  for (const { imei, atMs } of rest.points) expected.set(imei, Math.max(expected.get(imei) ?? 0, atMs));
  for (const [imei, atMs] of expected)
    if (held.get(imei) !== atMs)
      return [
        { rule: 'a feed has no gap', message: `${name}: ${imei} ends at ${held.get(imei)}, not at ${atMs}` },
      ];
  return [];
}
