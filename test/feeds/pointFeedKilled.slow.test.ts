import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS, HOUR_MS } from '../../src/lib/time.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { isUnavailable } from '../../src/postgres/sqlErrors.ts';
import { ServicePods } from '../support/feeds/servicePods.ts';
import { packPoints } from '../support/history/packPoints.ts';
import { storedPoints } from '../support/history/storedPoints.ts';
import { PointStream, streamDuring } from '../support/ingest/pointStream.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { serviceEnv } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const SEED = Number(process.env['FLEET_SEED'] ?? 1);
const IMEIS = Array.from({ length: 6 }, (_, n) => String(350_000_000_000_000 + n));
const CALL_LIMIT_MS = 10_000;
/** Between calls: in the short form the processor belongs to the restarts. */
const PAUSE_MS = IS_TORTURE ? 20 : 100;
/** Points between two harms. */
const SENT_BETWEEN = IS_TORTURE ? 100 : 50;

/** One reader, who asks any pod, and again with the same cursor when an answer did not come whole. */
class Reader {
  readonly counts = new Map<string, number>();
  readonly #key: string;
  readonly #anyPod: () => string;
  cursor = '';
  #isOver = false;

  constructor(key: string, anyPod: () => string) {
    this.#key = key;
    this.#anyPod = anyPod;
  }

  stop(): void {
    this.#isOver = true;
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      await this.call();
      await sleep(PAUSE_MS);
    }
  }

  /** Whether all was answered, and there is no more. */
  async call(): Promise<boolean> {
    let text: string;
    try {
      const response = await fetch(`${this.#anyPod()}/api/v3/history/export?cursor=${this.cursor}`, {
        headers: { 'X-API-Key': this.#key },
        signal: AbortSignal.timeout(CALL_LIMIT_MS),
      });
      text = await response.text();
      if ([429, 503].includes(response.status)) return false; // a call that was given up may count for a moment
      assert.equal(response.status, 200, text);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return false; // the pod is killed, or what it needs is
    }
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { cursor, has_more } = lines.pop();
    for (const { imei, recorded_at } of lines) {
      const point = `${imei} ${Date.parse(recorded_at)}`;
      this.counts.set(point, (this.counts.get(point) ?? 0) + 1);
    }
    this.cursor = cursor;
    return !has_more;
  }
}

describe('the feed of points', { skip: skipWithoutRedis() }, () => {
  test(`brings every point once while pods and Postgres are killed (seed ${SEED})`, async (t) => {
    const [postgres, redis] = await Promise.all([startOwnPostgres(t), startRedis(t)]);
    const admin = adminOf(postgres.url, redis.url);
    await admin.account(OWNER);
    await admin.importDevices(
      OWNER,
      IMEIS.map((imei) => ({ imei })),
    );
    const { key } = await admin.key(OWNER);
    const pods = await ServicePods.start(t, { ...serviceEnv(postgres.url), REDIS_URL: redis.url }, 2);
    const sql = openSql(postgres.url, { maxConnections: 2, name: 'test' });
    t.after(() => sql.end());
    const random = seededRandom(SEED);
    const any = (urls: readonly string[]) => urls[Math.floor(random() * 2)] as string;
    const readers = Array.from({ length: 2 }, () => new Reader(key, () => any(pods.apis)));
    for (const reader of readers) await waitFor(() => reader.call());
    const reading = Promise.all(readers.map((reader) => reader.run()));
    reading.catch(() => undefined);

    const pack = () => packPoints(sql).catch((error) => assert.ok(isUnavailable(error)));
    // In the short form a killed pod stays away, and Postgres is killed once.
    const killPod = (n: number) => pods.kill(n).then(() => (IS_TORTURE ? pods.start(n) : undefined));
    const harms = [
      () => killPod(0),
      () => postgres.kill().then(() => postgres.start()),
      pack,
      () => postgres.killSessions(),
      () => postgres.stop().then(() => postgres.start()),
      () => killPod(1),
    ];
    // Of the same devices: what the second and the third send comes late to what the first has sent, some of it to closed days.
    const beginMs = Date.now() - HOUR_MS;
    const streams = [0, 5, 9].map(
      (days) => new PointStream(IMEIS, Math.floor(random() * 1e9), beginMs - DAY_MS - days * DAY_MS),
    );
    await streamDuring(
      streams,
      () => any(pods.ingests),
      async (sent) => {
        for (let n = 0; n < (IS_TORTURE ? 10 * (harms.length - 1) : 3); n++) {
          const wanted = sent() + SENT_BETWEEN;
          await Promise.race([waitFor(() => sent() >= wanted), reading]);
          await harms[n % harms.length]?.();
        }
        const wanted = sent() + SENT_BETWEEN;
        await waitFor(() => sent() >= wanted);
      },
    );
    for (const reader of readers) reader.stop();
    await reading;
    const stored = (await storedPoints(sql)).map(({ imei, recordedAtMs }) => `${imei} ${recordedAtMs}`);
    assert.ok(stored.length > 4 * SENT_BETWEEN);
    for (const { counts, call } of readers.map((each) => ({
      counts: each.counts,
      call: () => each.call(),
    }))) {
      await waitFor(call);
      await waitFor(call);
      const missing = stored.filter((point) => !counts.has(point));
      const often = [...counts].filter(([point, count]) => count !== 1 || !stored.includes(point));
      assert.deepEqual([missing.slice(0, 5), often.slice(0, 5)], [[], []], `of ${stored.length}`);
    }
  });
});
