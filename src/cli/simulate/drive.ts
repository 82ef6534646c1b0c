import { text as textOf } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseJsonText } from '../../lib/parseText.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import type { SimulatedFleet, SimulatedPoint } from './simulatedFleet.ts';

export interface DriveOptions {
  readonly fleet: SimulatedFleet;
  readonly devices: number;
  readonly pointsPerSecond: number;
  /** Infinity: until interrupted. */
  readonly seconds: number;
  readonly client: Pick<IngestClient, 'send'>;
  readonly interrupted: AbortSignal;
  nowMs(): number;
  say(line: string): void;
}

/** Batches sent at once. The points of one device always go through the same sender, so they arrive in their order. */
const SENDERS = 4;
const BATCH_MAX = 1_000;
/** How long points are collected before they are sent. */
const TICK_MS = 100;
const PROGRESS_MS = 1_000;
/** After the end a service that is behind may still take what was due by then, for so long. */
const DRAIN_MS = 5_000;
/** How long a service may be away in the middle of a drive. */
const AWAY_LIMIT_MS = 30_000;
const RETRY_MS = 500;
/** A point due exactly now must not be missed because its time was computed a hair too late. */
const ROUNDING = 1e-6;

/**
 * Sends the points of a fleet at a steady rate, each with the time at which it was due. Ends after `seconds`, when
 * interrupted, or with an error when the service rejects the points or stays away for 30 s.
 */
export async function drive(options: DriveOptions): Promise<Result<object, string>> {
  const tally = new Tally(options);
  const stop = new AbortController();
  const signal = AbortSignal.any([options.interrupted, stop.signal]);
  const progress = setInterval(() => options.say(tally.progressLine()), PROGRESS_MS);
  const senders = Array.from({ length: Math.min(SENDERS, options.devices) }, (_, sender) =>
    driveEveryNth(options, sender, tally, signal).then((error) => {
      if (error !== null) stop.abort();
      return error;
    }),
  );
  const errors = (await Promise.all(senders)).filter((error) => error !== null);
  clearInterval(progress);
  const summary = tally.summary();
  return errors[0] === undefined ? ok(summary) : fail(`${errors[0]}; so far ${JSON.stringify(summary)}`);
}

/** Drives every SENDERS-th vehicle. Returns why it had to give up, or null. */
async function driveEveryNth(
  options: DriveOptions,
  sender: number,
  tally: Tally,
  signal: AbortSignal,
): Promise<string | null> {
  const { fleet, devices, pointsPerSecond, nowMs } = options;
  const vehicles = Math.ceil((devices - sender) / SENDERS);
  const gapMs = (1_000 * devices) / (pointsPerSecond * vehicles);
  const endMs = tally.startMs + options.seconds * 1_000;
  for (let done = 0; !signal.aborted; ) {
    const atMs = nowMs();
    const dueMs = Math.min(atMs, endMs) - tally.startMs;
    const count = Math.min(Math.floor(dueMs / gapMs + ROUNDING) - done, BATCH_MAX);
    if (count > 0) {
      const points: SimulatedPoint[] = [];
      for (let at = done + 1; at <= done + count; at++) {
        points.push(fleet.step(sender + SENDERS * (at % vehicles), Math.floor(tally.startMs + at * gapMs)));
      }
      const error = await sendUntilTaken(options, points, tally, signal);
      if (error !== null) return error;
      done += count;
    }
    // By the time of the count: while a batch was sent, more points may have become due.
    if (atMs >= endMs && (count < BATCH_MAX || nowMs() >= endMs + DRAIN_MS)) return null;
    if (count < BATCH_MAX) await pause(TICK_MS, signal);
  }
  return null;
}

/** Sending a batch again is safe: the service knows its points by device and time. */
async function sendUntilTaken(
  { client, nowMs, say }: DriveOptions,
  points: readonly SimulatedPoint[],
  tally: Tally,
  signal: AbortSignal,
): Promise<string | null> {
  const firstMs = nowMs();
  for (let attempt = 1; !signal.aborted; attempt++) {
    const startMs = nowMs();
    const outcome: SendOutcome = await client.send(points);
    if (outcome.kind === 'taken') {
      if (tally.counts.rejected === 0 && outcome.counts.rejected[0] !== undefined) {
        say(`a point was rejected: ${outcome.counts.rejected[0].code} ${outcome.counts.rejected[0].message}`);
      }
      tally.add(points.length, outcome.counts, nowMs() - startMs);
      return null;
    }
    if (outcome.kind === 'rejected' || nowMs() - firstMs > AWAY_LIMIT_MS) return outcome.message;
    if (attempt === 1) say(`${outcome.message}; trying again for ${AWAY_LIMIT_MS / 1_000} s`);
    await pause(RETRY_MS, signal);
  }
  return null;
}

class Tally {
  readonly startMs: number;
  readonly counts = { sent: 0, accepted: 0, duplicates: 0, late: 0, rejected: 0 };
  readonly #nowMs: () => number;
  /** Since the last progress line; one for each batch, so a second holds few. */
  #latenciesMs: number[] = [];
  #sentBefore = 0;
  #saidMs: number;

  constructor({ nowMs }: { nowMs: () => number }) {
    this.#nowMs = nowMs;
    this.startMs = nowMs();
    this.#saidMs = this.startMs;
  }

  add(sent: number, { accepted, duplicates, late, rejected }: BatchCounts, latencyMs: number): void {
    const { counts } = this;
    counts.sent += sent;
    counts.accepted += accepted;
    counts.duplicates += duplicates;
    counts.late += late;
    counts.rejected += rejected.length;
    this.#latenciesMs.push(latencyMs);
  }

  progressLine(): string {
    const nowMs = this.#nowMs();
    const { sent, accepted, rejected, late } = this.counts;
    const rate = Math.round(((sent - this.#sentBefore) * 1_000) / Math.max(1, nowMs - this.#saidMs));
    const sorted = this.#latenciesMs.toSorted((a, b) => a - b);
    const p95Ms = sorted[Math.ceil(sorted.length * 0.95) - 1];
    this.#latenciesMs = [];
    this.#sentBefore = sent;
    this.#saidMs = nowMs;
    const counts = `accepted ${accepted}, rejected ${rejected}, late ${late}`;
    return `${Math.round((nowMs - this.startMs) / 1_000)} s: ${rate} points/s, ${counts}, p95 ${p95Ms ?? '-'} ms`;
  }

  summary(): object {
    return { ...this.counts, seconds: Math.round((this.#nowMs() - this.startMs) / 100) / 10 };
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** What the service did with a batch. */
interface BatchCounts {
  readonly accepted: number;
  readonly duplicates: number;
  readonly late: number;
  readonly rejected: readonly { readonly code: string; readonly message: string }[];
}

/** 'unavailable' may be over soon: the same batch can be sent again. 'rejected' stays so. */
export type SendOutcome =
  | { readonly kind: 'taken'; readonly counts: BatchCounts }
  | { readonly kind: 'rejected'; readonly message: string }
  | { readonly kind: 'unavailable'; readonly message: string };

export interface IngestClient {
  send(points: readonly SimulatedPoint[]): Promise<SendOutcome>;
  close(): void;
}

const ANSWER_LIMIT_MS = 30_000;
const FORBIDDEN = 403;

/** Where the ingest listener is, and a token that it accepts. */
export interface IngestTarget {
  readonly host: string;
  readonly port: number;
  readonly token: string;
}

/** Sends batches to an ingest listener over one connection for each sender, which stays open. */
export function openIngestClient({ host, port, token }: IngestTarget): IngestClient {
  // Not an import, which would load undici in every command: see http/exchange.ts.
  const { Agent, request } = process.getBuiltinModule('node:http');
  const agent = new Agent({ keepAlive: true, maxSockets: SENDERS });
  const post = (body: Buffer): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        'content-length': body.length,
        'x-ingest-token': token,
      };
      const call = request({ agent, host, port, path: '/positions', method: 'POST', headers }, (response) => {
        const { statusCode: status = 0 } = response;
        textOf(response).then((text) => resolve({ status, text }), reject);
      });
      call.setTimeout(ANSWER_LIMIT_MS, () =>
        call.destroy(new Error(`no answer in ${ANSWER_LIMIT_MS / 1_000} s`)),
      );
      call.on('error', reject);
      call.end(body);
    });
  return {
    async send(points) {
      try {
        return outcomeOf(await post(Buffer.from(JSON.stringify(points))), `${host}:${port}`);
      } catch (error) {
        return { kind: 'unavailable', message: `${host}:${port} does not answer (${reasonOf(error)})` };
      }
    },
    close: () => agent.destroy(),
  };
}

function outcomeOf({ status, text }: { status: number; text: string }, place: string): SendOutcome {
  const counts = status === 200 ? parseCounts(text) : null;
  if (counts !== null) return { kind: 'taken', counts };
  if (status === FORBIDDEN) {
    return {
      kind: 'rejected',
      message: `${place} denies the token; set INGEST_TOKEN to that of the running service`,
    };
  }
  const message = `${place} answered ${status}: ${text.slice(0, 200)}`;
  return { kind: status >= 500 ? 'unavailable' : 'rejected', message };
}

function parseCounts(text: string): BatchCounts | null {
  const data = (parseJsonText(text) as { data?: Partial<BatchCounts> } | null | undefined)?.data;
  const { accepted, duplicates, late, rejected } = data ?? {};
  if (typeof accepted !== 'number' || typeof duplicates !== 'number' || typeof late !== 'number') return null;
  return { accepted, duplicates, late, rejected: Array.isArray(rejected) ? rejected : [] };
}

/** Node reports a name that resolves to several addresses, none of which listens, without a message of its own. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ('code' in error ? String(error.code) : error.name);
}
