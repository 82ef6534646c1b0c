import type { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { connectRedis, RedisPort, redisKeys, whenReady } from '../../src/redis/redisConnection.ts';
import { RedisRateLimiter } from '../../src/redis/redisRateLimiter.ts';
import { findRedisServer, startRedis } from '../../test/support/redis.ts';
import type { BenchCase, Row } from '../benchCase.ts';
import { comparePositions } from '../contenders/comparePositions.ts';
import { compareCuts, compareEdges } from '../contenders/compareRings.ts';
import { median } from '../measure/latencies.ts';
import { type CallTimes, type Compared, measureAsyncCalls, medianTimes } from '../measure/measureCalls.ts';

const DEVICES = [10_000, 100_000, 1_000_000];
const SMOKE_DEVICES = [1_000];
const VERTICES = [20, 200, 2_000];
const SMOKE_VERTICES = [20];
const ROUNDS = 5;
/** Of the usual nine seconds, so that about sixty measurements take a few minutes. */
const SECONDS_SHARE = 1 / 6;
const SMOKE_SECONDS = 0.01;

export const contenders: BenchCase = {
  about: 'our indexes and our cut at 180° against KDBush, Flatbush, polygon-clipping and polyclip-ts',
  run: async ({ smoke, seconds, sizes, say }) => {
    const effort = { rounds: smoke ? 1 : ROUNDS, seconds: smoke ? SMOKE_SECONDS : seconds * SECONDS_SHARE };
    const devices = sizes ?? (smoke ? SMOKE_DEVICES : DEVICES);
    const vertices = smoke ? SMOKE_VERTICES : VERTICES;
    const rows: Row[] = [];
    const metrics: Record<string, number> = {};
    const notes: string[] = [];
    // A ratio is the contender's time divided by ours: the least of all sizes counts.
    const add = (compared: Compared) => {
      rows.push(...compared.rows);
      for (const [name, ratio] of Object.entries(compared.ratios)) {
        metrics[name] = Math.min(metrics[name] ?? Infinity, ratio);
      }
    };
    for (const size of devices.toReversed()) {
      say(`${size} devices`);
      const compared = comparePositions(size, effort);
      add(compared);
      const { plain, ranked } = compared.wrongPercent;
      const { ours, kdbush } = compared.bytesPerDevice;
      metrics['geokdbush_wrong_percent'] = Math.max(metrics['geokdbush_wrong_percent'] ?? 0, plain);
      notes.push(
        `Of ${size} devices, geokdbush names one that is not the nearest in ${plain.toFixed(2)} % of the answers, and in ` +
          `${ranked.toFixed(2)} % with k + 4 ranked again. Memory for each device: ${ours.toFixed(0)} bytes in ours, ` +
          `${kdbush.toFixed(0)} in KDBush.`,
      );
    }
    for (const count of vertices.toReversed()) {
      say(`${count} vertices`);
      add(compareEdges(count, effort));
      add(compareCuts(count, effort));
    }
    const size = `${devices.join(', ')} devices; polygons of ${vertices.join(', ')} vertices`;
    return { kind: 'measured', size, rows, metrics, notes };
  },
};

/** Calls under way at a time: an idle service, and a busy one. */
const PARALLEL = [1, 64];
const REDIS_SMOKE_SECONDS = 0.05;
const LIMIT = 1e9;
const KEYS = 1_000;
const READY_LIMIT_MS = 5_000;

export const contendersRedis: BenchCase = {
  about: 'three limits of a call in Redis: our script against rate-limiter-flexible',
  run: async ({ smoke, seconds }) => {
    if (findRedisServer() === null) return { kind: 'skipped', reason: 'there is no redis-server in PATH' };
    const server = await startRedis();
    const redis = connectRedis(server.url, { info: () => undefined, warn: () => undefined });
    try {
      if (!(await whenReady(redis, READY_LIMIT_MS))) throw new Error('Redis is not ready');
      const [ours, flexible] = [checkWithScript(redis), consumeEach(redis)];
      const rounds = smoke ? 1 : ROUNDS;
      const share = smoke ? REDIS_SMOKE_SECONDS : seconds / PARALLEL.length / rounds;
      const rows: Row[] = [];
      const metrics: Record<string, number> = {};
      for (const parallel of PARALLEL) {
        const [own, other]: [CallTimes[], CallTimes[]] = [[], []];
        for (let round = 0; round < rounds; round++) {
          own.push(await measureAsyncCalls(share, parallel, ours));
          other.push(await measureAsyncCalls(share, parallel, flexible));
        }
        const what = `three limits, ${parallel} at a time`;
        rows.push({ what: `${what}: our script`, unit: 'calls', ...medianTimes(own) });
        rows.push({ what: `${what}: rate-limiter-flexible`, unit: 'calls', ...medianTimes(other) });
        const ratios = own.map(({ cpuUs }, n) => other[n]!.cpuUs / cpuUs);
        metrics[`limits_${parallel}_vs_flexible`] = median(ratios);
      }
      return { kind: 'measured', size: `three windows, ${KEYS} keys`, rows, metrics };
    } finally {
      redis.disconnect();
      await server.stop();
    }
  },
};

/** One run of our script for all calls of a turn of the event loop. */
function checkWithScript(redis: Redis): (n: number) => Promise<unknown> {
  const limits = { ipMinute: LIMIT, keyMinute: LIMIT, keyHour: LIMIT };
  const port = new RedisPort(redis, { onEvent: () => undefined });
  const catchUp = async () => undefined;
  const options = { limits, catchUp, onCatchUpFailed: () => undefined };
  const limiter = new RedisRateLimiter(port, redisKeys('bench'), options);
  return async (n) => {
    const [ip, keyId] = [`10.0.0.${n % KEYS}`, n % KEYS];
    const rest = { refundIp: null, worldIds: [], versions: [], verified: false };
    const verdict = await limiter.check({ ip, keyId, ...rest }, Date.now());
    if (verdict.kind !== 'pass') throw new Error(`our script answers ${verdict.kind}`);
  };
}

/** One script of rate-limiter-flexible for each limit, all three sent at once; a rejected call would cost the others. */
function consumeEach(redis: Redis): (n: number) => Promise<unknown> {
  const limiter = (keyPrefix: string, duration: number) =>
    new RateLimiterRedis({ storeClient: redis, keyPrefix, points: LIMIT, duration });
  const ipMinute = limiter('ip-minute', 60);
  const keyMinute = limiter('key-minute', 60);
  const keyHour = limiter('key-hour', 3_600);
  return (n) => {
    const [ip, keyId] = [`10.0.0.${n % KEYS}`, n % KEYS];
    return Promise.all([ipMinute.consume(ip), keyMinute.consume(keyId), keyHour.consume(keyId)]);
  };
}
