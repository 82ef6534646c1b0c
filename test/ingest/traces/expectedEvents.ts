import assert from 'node:assert/strict';
import { formatIso } from '../../../src/lib/time.ts';
import type { ExpectedEvent, Trace } from './trace.ts';

/** An event as the API shows it, with the names of the story in the place of ids. */
export interface ReportedEvent {
  readonly device: string | undefined;
  readonly area: string | undefined;
  readonly occurredAt: string;
  readonly readBy: readonly string[];
  /** `data` of the event, v3, without `areaId`. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** What a story that begins at `startMs` must produce, in the order of production. */
export function expectedEvents(trace: Trace, startMs: number): ReportedEvent[] {
  return trace.events.map((event) => reported(event, trace, startMs));
}

/** Seconds of a story → epoch milliseconds. */
export function instantMs(startMs: number, seconds: number): number {
  return startMs + Math.round(seconds * 1_000);
}

function reported(expected: ExpectedEvent, { steps }: Trace, startMs: number): ReportedEvent {
  const { event, device, area, areaName, dwellSeconds, readBy } = expected;
  const point = steps
    .flatMap((step) => (step.kind === 'send' ? step.points : []))
    .find((one) => one.device === device && one.atSeconds === expected.atSeconds);
  assert.ok(point, 'a story expects events at its points');
  const atMs = instantMs(startMs, expected.atSeconds);
  const sinceMs = instantMs(startMs, expected.sinceSeconds);
  const data = {
    position: { lat: point.latitude, lng: point.longitude },
    areaName,
    event,
    enteredAt: formatIso(sinceMs),
    dwellSeconds,
  };
  return {
    device,
    area,
    occurredAt: formatIso(atMs),
    readBy,
    data: event === 'exit' ? { ...data, staySeconds: (atMs - sinceMs) / 1_000 } : data,
  };
}
