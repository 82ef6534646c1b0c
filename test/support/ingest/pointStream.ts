import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from '../../../src/postgres/sql.ts';
import { storedPoints } from '../history/storedPoints.ts';
import { INGEST_TOKEN, request } from '../pod.ts';
import { seededRandom } from '../seededRandom.ts';
import { IS_TORTURE } from '../torture.ts';

/** A point as it is sent, with every field that events are made of. */
export interface SentPoint {
  readonly imei: string;
  readonly recorded_at: number;
  readonly latitude: number;
  readonly longitude: number;
  readonly speed_kmh: number;
  readonly ignition?: boolean;
  readonly alarm?: string;
  readonly rfid?: string;
}

/** Where a device is at its next point. */
export type PlaceOf = (imei: string, random: () => number) => { latitude: number; longitude: number };

/** The time of the next point, in epoch ms: later than that of the last one. */
export type TimeOf = (lastMs: number, random: () => number) => number;

const RETRY_MS = 20;
/** Between batches: in the short form the processor belongs to the restarts. */
const PAUSE_MS = IS_TORTURE ? 0 : 50;
const POINTS_MAX = 12;
const STEP_MS = 25_000;

/**
 * One sender of several devices, as an integrator runs it: batch after batch in time order. A batch without an
 * answer is sent again after a restart, or given up, by the toss of a coin.
 */
export class PointStream {
  /** Points whose batch was answered with 200: they must be stored. */
  readonly acknowledged: SentPoint[] = [];
  /** Points given up without an answer: they may be stored. */
  readonly doubtful: SentPoint[] = [];
  readonly #imeis: readonly string[];
  readonly #random: () => number;
  readonly #placeOf: PlaceOf;
  readonly #timeOf: TimeOf;
  #clockMs: number;
  #isOver = false;

  constructor(
    imeis: readonly string[],
    seed: number,
    startMs: number,
    placeOf: PlaceOf = anywhere,
    timeOf: TimeOf = soonAfter,
  ) {
    this.#imeis = imeis;
    this.#random = seededRandom(seed);
    this.#clockMs = startMs;
    this.#placeOf = placeOf;
    this.#timeOf = timeOf;
  }

  stop(): void {
    this.#isOver = true;
  }

  /** Sends until `stop`; `ingest` returns where the service is at the moment. */
  async run(ingest: () => string): Promise<void> {
    while (!this.#isOver) {
      const batch = this.#batch();
      while (!(await send(ingest(), batch))) {
        await sleep(RETRY_MS);
        if (this.#random() < 0.3) {
          this.doubtful.push(...batch);
          batch.length = 0;
          break;
        }
      }
      this.acknowledged.push(...batch);
      await sleep(PAUSE_MS);
    }
  }

  #batch(): SentPoint[] {
    return Array.from({ length: 1 + Math.floor(this.#random() * POINTS_MAX) }, () => this.#point());
  }

  #point(): SentPoint {
    const random = this.#random;
    const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
    this.#clockMs = this.#timeOf(this.#clockMs, random);
    const ignition = oneOf([true, false, undefined]);
    const alarm = oneOf(['sos', 'tampering', 'sos,lowBattery', undefined, undefined]);
    const rfid = oneOf(['A1', 'B2', undefined, undefined]);
    const imei = oneOf(this.#imeis);
    return {
      imei,
      recorded_at: this.#clockMs,
      ...this.#placeOf(imei, random),
      speed_kmh: random() < 0.5 ? 0 : random() * 90,
      ...(ignition !== undefined && { ignition }),
      ...(alarm !== undefined && { alarm }),
      ...(rfid !== undefined && { rfid }),
    };
  }
}

function anywhere(_imei: string, random: () => number) {
  return { latitude: random() * 180 - 90, longitude: random() * 360 - 180 };
}

function soonAfter(lastMs: number, random: () => number): number {
  return lastMs + 1 + Math.floor(random() * STEP_MS);
}

/** A sender asks another pod then. */
const GIVE_UP_MS = 8_000;

/** Whether the batch was answered with 200. An empty batch needs no answer. */
async function send(ingest: string, batch: readonly SentPoint[]): Promise<boolean> {
  if (batch.length === 0) return true;
  try {
    const { status, text } = await request(`${ingest}/positions`, {
      method: 'POST',
      headers: { 'X-Ingest-Token': INGEST_TOKEN },
      body: JSON.stringify(batch),
      signal: AbortSignal.timeout(GIVE_UP_MS),
    });
    if (status !== 200 && status !== 503) throw new Rejected(`/positions answered ${status}: ${text}`);
    return status === 200;
  } catch (error) {
    if (error instanceof Rejected) throw error;
    return false; // the connection was lost, or the pod is stopped
  }
}

class Rejected extends Error {}

export interface Sent {
  readonly acknowledged: readonly SentPoint[];
  readonly doubtful: readonly SentPoint[];
}

/** Sends from all sides while `harm` goes on, which can ask how many points were acknowledged so far. */
export async function streamDuring(
  streams: readonly PointStream[],
  ingest: () => string,
  harm: (acknowledged: () => number) => Promise<void>,
): Promise<Sent> {
  const running = Promise.all(streams.map((stream) => stream.run(ingest)));
  running.catch(() => undefined);
  const acknowledged = () => streams.reduce((sum, stream) => sum + stream.acknowledged.length, 0);
  await Promise.race([running, harm(acknowledged)]);
  for (const stream of streams) stream.stop();
  await running;
  return {
    acknowledged: streams.flatMap((stream) => stream.acknowledged),
    doubtful: streams.flatMap((stream) => stream.doubtful),
  };
}

/**
 * All points that Postgres holds, by device and time. Proves that each was sent, that none is there twice, and that
 * every acknowledged one is there.
 */
export async function provenPoints(sql: Sql, { acknowledged, doubtful }: Sent): Promise<SentPoint[]> {
  const sent = new Map(
    [...acknowledged, ...doubtful].map((point) => [`${point.imei} ${point.recorded_at}`, point]),
  );
  const stored = (await storedPoints(sql)).map(({ imei, recordedAtMs, lat, lng }) => {
    const point = sent.get(`${imei} ${recordedAtMs}`);
    assert.ok(point, `nobody sent ${imei} ${new Date(recordedAtMs).toISOString()}`);
    assert.deepEqual([lat, lng], [point.latitude, point.longitude]);
    return point;
  });
  assert.equal(new Set(stored).size, stored.length, 'no point is stored twice');
  const kept = new Set(stored);
  const missing = acknowledged.filter((point) => !kept.has(point));
  assert.deepEqual(missing, [], 'every acknowledged point is stored');
  return stored;
}
