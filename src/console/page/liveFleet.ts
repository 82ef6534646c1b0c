import { computed, signal } from '@preact/signals';
import { call, forgetSession, limitEndsByMs, token, wait } from './api.ts';
import { filters } from './filters.ts';
import { changeOf, type DeviceChange, Fleet, nameOf } from './fleet.ts';
import { serverNowMs } from './format.ts';
import {
  chooseAgain,
  countPath,
  followLarge,
  isLarge,
  isViewLive,
  LIMITS,
  largeTotal,
  openStream,
  wantedStream,
  wholeCounts,
} from './largeFleet.ts';
import { chosen } from './map/mapState.ts';
import { SharedStream, type StreamPart } from './sharedStream.ts';
import { ShownFleet } from './shownFleet.ts';
import { readStream, type StreamEnd, type StreamMessage } from './stream.ts';
import type { FleetEvent } from './types.ts';

/** Whether what is shown is what happens. Unless it is live, it is tried again and again. */
export type Line =
  | { readonly state: 'connecting' | 'live' | 'lost' }
  | {
      readonly state: 'limited';
      /** Which limit, as the service says it. */
      readonly message: string;
      /** When it has ended at the latest; null: unknown. */
      readonly endsByMs: number | null;
      readonly againAtMs: number;
    };

export const line = signal<Line>({ state: 'connecting' });
export const fleet = new Fleet();
export const shownFleet = new ShownFleet(fleet, filters);
/** How many devices of the chosen groups have each status; of a fleet that is not large, those that the search finds. */
export const shownCounts = computed(() => (isLarge.value ? wholeCounts : shownFleet.counts).value);

/** How many devices the account sees. */
export function fleetSize(): number {
  return isLarge.value ? largeTotal.value : fleet.size;
}

/** What people call a device; its IMEI while it is not known. */
export function nameOfImei(imei: string): string {
  return nameOf(fleet.get(imei) ?? { name: null, plate: null, imei });
}

/** Newest first, at most EVENTS_MAX. */
export const events = signal<readonly FleetEvent[]>([]);
/** Whether the events from before the page was opened are loaded, or why they could not be read. */
export const firstEvents = signal<
  | { readonly state: 'asked' }
  | { readonly state: 'read'; readonly page: readonly FleetEvent[] }
  | { readonly state: 'refused'; readonly message: string }
>({ state: 'asked' });

const EVENTS_MAX = 200;
/** Changes between two looks at the clock: a tenth of a millisecond. */
const APPLIED_AT_ONCE = 10;
/** Devices in one part of what a tab sends to a new follower. */
const SENT_AT_ONCE = 1_000;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10_000;
/** Windows of limits are a minute and an hour long. */
const LIMITED_MS = 20_000;
const AGE_EVERY_MS = 5_000;
/** When a fleet or a view has this many times its limit of devices, the page decides again how to show it. */
const GROWN = 2;

/** Follows the fleet until aborted. A lost connection resumes at its cursor, so nothing is missed or shown twice. */
export async function followFleet(signal: AbortSignal): Promise<void> {
  const live = new LiveFleet(signal);
  signal.addEventListener('abort', () => live.close());
  await live.follow();
}

class LiveFleet {
  readonly #signal: AbortSignal;
  readonly #shared: SharedStream;
  readonly #pace = new FramePace();
  readonly #ageTimer = setInterval(() => void this.#age(), AGE_EVERY_MS);
  #cursor = '';
  #retryMs = RETRY_MIN_MS;
  #isAging = false;
  /** What the open stream has shown of a large fleet, and not left since. */
  readonly #viewed = new Set<string>();
  /** Whether devices that the open stream has not shown yet may be kept. */
  #isViewComplete = true;
  /** Ends the stream that is open for another one. */
  #turn = new AbortController();
  #limitEndsByMs: number | null = null;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    this.#shared = new SharedStream(token.value ?? '', (send) => this.#sendAll(send));
    addEventListener('pagehide', this.#leave);
  }

  /** The tab is closed: another one opens the stream. */
  readonly #leave = (): void => {
    this.#shared.isOpen = false;
  };

  async follow(): Promise<void> {
    line.value = { state: 'connecting' };
    events.value = [];
    firstEvents.value = { state: 'asked' };
    fleet.clear();
    void readFirstEvents(this.#signal);
    await this.#measure();
    while (!this.#signal.aborted) {
      this.#turn = new AbortController();
      const turn = AbortSignal.any([this.#signal, this.#turn.signal]);
      if (isLarge.value && document.hidden) await once(document, 'visibilitychange', turn);
      else if (isLarge.value || !(await this.#shared.follow(turn, (part) => this.#takePart(part))))
        await this.#read(turn);
    }
  }

  /** Whether the page can hold the fleet; asked until it is answered. */
  async #measure(): Promise<void> {
    isLarge.value = false;
    openStream.value = null;
    while (!this.#signal.aborted) {
      const reply = await call<{ total?: number }>({ method: 'GET', path: countPath('') });
      if (reply.ok) {
        largeTotal.value = reply.data?.total ?? 0;
        return largeTotal.value > LIMITS.fleet ? this.#becomeLarge() : undefined;
      }
      await this.#rest(reply.limit === null ? { kind: 'ended' } : { kind: 'limited', message: reply.limit });
    }
  }

  #becomeLarge(): void {
    if (this.#signal.aborted) return;
    isLarge.value = true;
    fleet.clear();
    followLarge(fleet, (imei) => this.#viewed.has(imei), this.#signal);
    const turn = (): void => this.#turn.abort();
    const stop = wantedStream.subscribe(turn);
    document.addEventListener('visibilitychange', turn, { signal: this.#signal });
    this.#signal.addEventListener('abort', stop);
  }

  /** Reads the stream that is wanted until it ends. */
  async #read(turn: AbortSignal): Promise<void> {
    const asked = isLarge.value ? wantedStream.value : '';
    const end = await readStream(asked, this.#cursor, turn, {
      opened: () => {
        line.value = { state: 'live' };
        this.#shared.isOpen = !isLarge.value;
        if (!isLarge.value) return;
        // The stream before this one may have ended before its first message: what came then is in the list.
        if (this.#cursor === '') void readFirstEvents(this.#signal);
        openStream.value = asked;
        this.#viewed.clear();
        this.#isViewComplete = false;
        if (!isViewLive.value) this.#forgetOthers();
      },
      take: (messages) => this.#take(messages),
    });
    this.#shared.isOpen = false;
    if (turn.aborted) return;
    if (end.kind === 'forbidden') return forgetSession();
    if (end.kind === 'expired') {
      fleet.clear();
      this.#cursor = '';
      void readFirstEvents(this.#signal);
    }
    await this.#rest(end);
  }

  /** Of a large fleet: forgets what is not in view, but for the chosen device. */
  #forgetOthers(): void {
    this.#isViewComplete = true;
    const others = Array.from(fleet.values(), ({ imei }) => imei).filter(
      (imei) => !this.#viewed.has(imei) && imei !== chosen.peek(),
    );
    fleet.apply(others.map((imei) => ({ imei, removed: true })));
  }

  /** The change of the fleet that a message of the stream means; null: none. */
  #changeOf(told: DeviceChange | LeftDevice): DeviceChange | null {
    const { imei } = told;
    const isThere = !('removed' in told || 'left' in told);
    if (!isLarge.value) return 'left' in told ? { imei, removed: true } : told;
    if (isThere) {
      this.#viewed.add(imei);
      return told;
    }
    this.#viewed.delete(imei);
    return 'left' in told && imei === chosen.peek() ? null : { imei, removed: true };
  }

  close(): void {
    clearInterval(this.#ageTimer);
    removeEventListener('pagehide', this.#leave);
    this.#shared.close();
  }

  /** Says why nothing is live, and waits before the next try. */
  async #rest(end: StreamEnd): Promise<void> {
    if (end.kind === 'limited') {
      const { message } = end;
      const nowMs = Date.now();
      // The first refusal says most of when the window ends; after that end it is another window.
      if (this.#limitEndsByMs === null || this.#limitEndsByMs < nowMs)
        this.#limitEndsByMs = limitEndsByMs(message, nowMs);
      line.value = {
        state: 'limited',
        message,
        endsByMs: this.#limitEndsByMs,
        againAtMs: nowMs + LIMITED_MS,
      };
      return wait(LIMITED_MS, this.#signal);
    }
    this.#limitEndsByMs = null;
    line.value = { state: 'lost' };
    await wait(this.#retryMs, this.#signal);
    this.#retryMs = Math.min(RETRY_MAX_MS, this.#retryMs * 2);
  }

  async #take(messages: Iterable<StreamMessage>): Promise<void> {
    let changed: DeviceChange[] = [];
    let happened: FleetEvent[] = [];
    const apply = (): void => {
      if (changed.length > 0) fleet.apply(changed);
      if (happened.length > 0) addEvents(happened);
      this.#shared.forward(changed, happened, this.#cursor);
      changed = [];
      happened = [];
    };
    this.#pace.begin();
    for (const { event, id, data } of messages) {
      if (this.#signal.aborted) return;
      this.#retryMs = RETRY_MIN_MS;
      this.#cursor = id;
      if (event === 'fleet_event') happened.push(JSON.parse(data));
      if (event === 'device') {
        const change = this.#changeOf(JSON.parse(data));
        if (change !== null) changed.push(change);
      }
      // By then the devices in view have come.
      if (event === 'heartbeat' && !this.#isViewComplete) {
        apply();
        this.#forgetOthers();
      }
      if (changed.length + happened.length < APPLIED_AT_ONCE) continue;
      apply();
      const waiting = this.#pause();
      if (waiting !== null) await waiting;
    }
    if (!this.#signal.aborted) apply();
  }

  #takePart({ isFirst, devices, events: happened, cursor }: StreamPart): void {
    if (isFirst) {
      fleet.clear();
      line.value = { state: 'live' };
    }
    fleet.apply(devices);
    addEvents(happened);
    if (cursor !== '') this.#cursor = cursor;
  }

  #sendAll(send: (part: StreamPart) => void): void {
    let devices: DeviceChange[] = [];
    send({ isFirst: true, devices, events: events.value, cursor: '' });
    for (const device of fleet.values()) {
      devices.push(changeOf(device));
      if (devices.length < SENT_AT_ONCE) continue;
      send({ isFirst: false, devices, events: [], cursor: '' });
      devices = [];
    }
    send({ isFirst: false, devices, events: [], cursor: this.#cursor });
  }

  async #age(): Promise<void> {
    if (this.#isAging) return;
    this.#isAging = true;
    if (!isLarge.value && fleet.size > GROWN * LIMITS.fleet) {
      this.#becomeLarge();
      this.#turn.abort();
    }
    if (isLarge.value && fleet.size > GROWN * LIMITS.view) chooseAgain();
    await fleet.age(serverNowMs(), () => this.#pause());
    this.#isAging = false;
  }

  /** Null while work may go on. Nothing is drawn in a hidden tab, so it leaves nothing to drawing. */
  #pause(): Promise<void> | null {
    return this.#pace.isUsedUp && !document.hidden ? this.#pace.wait() : null;
  }
}

/** Of a view: it is not in the box any more, or does not pass the filters. */
interface LeftDevice {
  readonly imei: string;
  readonly left: true;
}

function once(target: EventTarget, event: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    target.addEventListener(event, () => resolve(), { once: true, signal });
    signal.addEventListener('abort', () => resolve());
  });
}

/** What happened before the page was opened. It is asked for until it is answered. */
async function readFirstEvents(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const recent = await call<FleetEvent[]>({ method: 'GET', path: '/api/v1/events?limit=50' });
    if (signal.aborted) return;
    firstEvents.value = recent.ok
      ? { state: 'read', page: recent.data }
      : { state: 'refused', message: recent.message };
    if (recent.ok) return addEvents(recent.data);
    await wait(LIMITED_MS, signal);
  }
}

/** The list and the stream may both bring an event: it is shown once. */
function addEvents(more: readonly FleetEvent[]): void {
  if (more.length === 0) return;
  const byId = new Map([...events.value, ...more].map((event) => [event.id, event]));
  events.value = [...byId.values()].sort((a, b) => b.id - a.id).slice(0, EVENTS_MAX);
}

/** The part of a frame of 1/60 s (not a whole number of ms) that work may use: enough for 10 000 changes a second. */
const PART_MS = 1.2;
const FRAME_MS = 17;

/** Leaves the rest of each frame to drawing: work that has used up its part waits for the next one. */
class FramePace {
  #frameStartMs = 0;
  #workStartMs = 0;
  #usedMs = 0;

  /** Must be called when work begins, or resumes after waiting for something else. */
  begin(): void {
    this.#workStartMs = performance.now();
  }

  /** True when the running work should pause: see `wait`. */
  get isUsedUp(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#frameStartMs >= FRAME_MS) {
      this.#frameStartMs = nowMs;
      this.#usedMs = 0;
    }
    this.#usedMs += nowMs - this.#workStartMs;
    this.#workStartMs = nowMs;
    return this.#usedMs >= PART_MS;
  }

  async wait(): Promise<void> {
    const restMs = this.#frameStartMs + FRAME_MS - performance.now();
    await new Promise((resolve) => setTimeout(resolve, restMs));
    this.begin();
  }
}
