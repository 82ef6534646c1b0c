import { signal } from '@preact/signals';
import { call, forgetSession, token } from './api.ts';
import { nameOf } from './findDevices.ts';
import { Fleet } from './fleet.ts';
import { FramePace } from './framePace.ts';
import { bodyTexts } from './stream/bodyTexts.ts';
import { type StreamMessage, StreamMessages } from './stream/streamMessages.ts';
import type { ChangedDevice, FleetEvent } from './types.ts';

/** Whether what is shown is what happens: `lost` until the line is back, which is tried again and again. */
export const line = signal<'connecting' | 'live' | 'lost'>('connecting');
export const fleet = new Fleet();

/** What people call a device; its IMEI while it is not known. */
export function nameOfImei(imei: string): string {
  return nameOf(fleet.get(imei) ?? { name: null, plate: null, imei });
}

/** Newest first, at most EVENTS_MAX. */
export const events = signal<readonly FleetEvent[]>([]);

const EVENTS_MAX = 200;
/** Changes between two looks at the clock: a tenth of a millisecond. */
const APPLIED_AT_ONCE = 10;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10_000;
/** A heartbeat comes every ten seconds. */
const SILENCE_MS = 25_000;

/** Follows the fleet until aborted. A line that is lost goes on at its cursor, so nothing is missed or shown twice. */
export async function followFleet(signal: AbortSignal): Promise<void> {
  let cursor = '';
  let retryMs = RETRY_MIN_MS;
  const pace = new FramePace();
  const begin = async (): Promise<void> => {
    fleet.clear();
    cursor = '';
    const recent = await call<FleetEvent[]>({ method: 'GET', path: '/api/v1/events?limit=50' });
    if (recent.ok && !signal.aborted) addEvents(recent.data);
  };
  const take = async (messages: Iterable<StreamMessage>): Promise<void> => {
    let changed: ChangedDevice[] = [];
    let happened: FleetEvent[] = [];
    const apply = (): void => {
      if (changed.length > 0) fleet.apply(changed);
      if (happened.length > 0) addEvents(happened);
      changed = [];
      happened = [];
    };
    pace.begin();
    for (const { event, id, data } of messages) {
      if (signal.aborted) return;
      retryMs = RETRY_MIN_MS;
      cursor = id;
      if (event === 'fleet_event') happened.push(JSON.parse(data));
      if (event === 'device') changed.push(JSON.parse(data));
      if (changed.length + happened.length < APPLIED_AT_ONCE) continue;
      apply();
      if (pace.isUsedUp) await pace.wait();
    }
    if (!signal.aborted) apply();
  };
  line.value = 'connecting';
  events.value = [];
  await begin();
  while (!signal.aborted) {
    const outcome = await readStream(cursor, signal, take);
    if (signal.aborted) return;
    line.value = 'lost';
    if (outcome === 'forbidden') return forgetSession();
    if (outcome === 'expired') await begin();
    await new Promise((resolve) => setTimeout(resolve, retryMs));
    retryMs = Math.min(RETRY_MAX_MS, retryMs * 2);
  }
}

/** Reads until the line ends. `forbidden`: the session is over. `expired`: the cursor is too old, begin anew. */
async function readStream(
  cursor: string,
  signal: AbortSignal,
  take: (messages: Iterable<StreamMessage>) => Promise<void>,
): Promise<'ended' | 'forbidden' | 'expired'> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const query = cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`;
    const response = await fetch(`/api/v1/stream${query}`, {
      headers: { Authorization: `Bearer ${token.value}` },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (response.status === 403) return 'forbidden';
    if (response.status === 410) return 'expired';
    if (!response.ok || response.body === null) return 'ended';
    line.value = 'live';
    const messages = new StreamMessages();
    for await (const text of bodyTexts(response.body)) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      await take(messages.take(text));
    }
    return 'ended';
  } catch {
    return 'ended'; // cut off, silent, or unreachable: all are tried again
  } finally {
    clearTimeout(timer);
    silence.abort(); // whatever ended the reading, the line is closed
  }
}

/** The list and the stream may both bring an event: it is shown once. */
function addEvents(more: readonly FleetEvent[]): void {
  const byId = new Map([...events.value, ...more].map((event) => [event.id, event]));
  events.value = [...byId.values()].sort((a, b) => b.id - a.id).slice(0, EVENTS_MAX);
}
