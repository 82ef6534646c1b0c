import { createHash } from 'node:crypto';
import { invariant } from '../lib/errors.ts';
import { HOUR_MS, MINUTE_MS } from '../lib/time.ts';
import {
  LIMITED,
  type LimitRequest,
  type LimitVerdict,
  LocalRateLimiter,
  PASS,
  type RateLimiter,
  type RateLimiterOptions,
  type StaleWorld,
  UNVERIFIED,
  type WorldVersions,
} from './rateLimiter.ts';
import type { LuaScript, RedisKeys, RedisPort } from './redisConnection.ts';

export interface RedisRateLimiterOptions extends RateLimiterOptions {
  /**
   * Resolves when memory holds everything that was committed before the call. Called after each new connection: Redis
   * may have forgotten versions that it confirmed before (restart from a snapshot, failover to a replica), so until then
   * its versions confirm nothing; one that is newer than memory is newer all the same. A rejection is reported, and the
   * next check calls again.
   */
  readonly catchUp: () => Promise<void>;
  readonly onCatchUpFailed: (error: unknown) => void;
}

/** Requests of one run of the script, which keeps Redis busy for about half a millisecond. */
const BATCH_MAX = 128;
/** Requests that wait for an answer. Further ones are checked without Redis, as if it were lost. */
const IN_FLIGHT_MAX = 16_384;

interface Waiting {
  /** What is sent: the caller's request, or the part of it that can be checked while versions confirm nothing. */
  readonly request: LimitRequest;
  readonly original: LimitRequest;
  readonly nowMs: number;
  readonly resolve: (verdict: LimitVerdict) => void;
}

/**
 * The rate limiter of several processes: limits and versions in Redis, with one round trip for all calls of an event
 * loop turn. While Redis is lost, each process counts for itself and versions are 'unverified'.
 *
 * Why not rate-limiter-flexible: a limited call must not be charged to any other limit, and limits and versions must
 * take one round trip. Both need one script that reads everything before it charges anything.
 */
export class RedisRateLimiter implements RateLimiter {
  readonly #port: RedisPort;
  readonly #names: RedisKeys;
  readonly #options: RedisRateLimiterOptions;
  /** The arguments of the script that are the same in each run. */
  readonly #rules: readonly (string | number)[];
  readonly #fallback: LocalRateLimiter;
  #batch: Waiting[] = [];
  #inFlight = 0;
  #trustedSession = -1;
  #askedSession = -1;

  constructor(port: RedisPort, names: RedisKeys, options: RedisRateLimiterOptions) {
    const { limits, minuteMs = MINUTE_MS, hourMs = HOUR_MS } = options;
    this.#port = port;
    this.#names = names;
    this.#options = options;
    this.#fallback = new LocalRateLimiter(options);
    const { ipMinute, keyMinute, keyHour } = limits;
    this.#rules = [names.none, TICKET_MS, ipMinute, minuteMs, keyMinute, minuteMs, keyHour, hourMs];
  }

  check(original: LimitRequest, nowMs: number): LimitVerdict | Promise<LimitVerdict> {
    invariant(original.worldIds.length === original.versions.length, 'a version for each world');
    if (!this.#port.isUsable || this.#inFlight >= IN_FLIGHT_MAX) return this.#checkAlone(original, nowMs);
    const request = this.#isTrusted() ? original : withoutKey(original);
    return new Promise((resolve) => {
      this.#inFlight++;
      // At the end of this turn every readable socket has been read: one batch for all of their calls.
      if (this.#batch.push({ request, original, nowMs, resolve }) === 1) setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = [];
    for (let i = 0; i < batch.length; i += BATCH_MAX) void this.#send(batch.slice(i, i + BATCH_MAX));
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const { keys, args } = this.#argumentsOf(batch);
    const answer = await this.#port.run(RATE_LIMIT_SCRIPT, keys, args);
    this.#inFlight -= batch.length;
    const replies = answer.ok ? (answer.value as readonly unknown[]) : null;
    for (const [i, { request, original, nowMs, resolve }] of batch.entries()) {
      if (replies === null) resolve(this.#checkAlone(original, nowMs));
      else resolve(verdictFor(original, request, rateLimitVerdict(replies[i], request)));
    }
  }

  /** The arguments of one run of the script, which checks several requests one after the other. */
  #argumentsOf(batch: readonly Waiting[]): { keys: string[]; args: (string | number)[] } {
    const names = this.#names;
    const { ipMinute, keyMinute, keyHour } = this.#options.limits;
    const keys: string[] = [];
    const args = [...this.#rules];
    for (const { request } of batch) {
      const { ip, keyId, refundIp, worldIds, versions, verified } = request;
      keys.push(
        ip === null || ipMinute === 0 ? names.none : `${names.ipMinute}${ip}`,
        keyId === null || keyMinute === 0 ? names.none : `${names.keyMinute}${keyId}`,
        keyId === null || keyHour === 0 ? names.none : `${names.keyHour}${keyId}`,
        refundIp === null || ipMinute === 0 ? names.none : `${names.ipMinute}${refundIp}`,
      );
      args.push(verified ? 0 : worldIds.length);
      for (let i = 0; i < worldIds.length && !verified; i++) {
        keys.push(`${names.world}${worldIds[i] as number}`);
        args.push(versions[i] as number);
      }
    }
    return { keys, args };
  }

  #checkAlone(original: LimitRequest, nowMs: number): LimitVerdict {
    const request = withoutVersions(original);
    return verdictFor(original, request, this.#fallback.check(request, nowMs));
  }

  #isTrusted(): boolean {
    const session = this.#port.session;
    if (this.#askedSession !== session) {
      this.#askedSession = session;
      this.#options.catchUp().then(
        () => {
          this.#trustedSession = Math.max(this.#trustedSession, session);
        },
        (error: unknown) => {
          if (this.#askedSession === session) this.#askedSession = -1;
          this.#options.onCatchUpFailed(error);
        },
      );
    }
    return this.#trustedSession === session;
  }
}

/** A request whose versions are compared, but cannot pass by that. It will be made again, so its key is not charged. */
function withoutKey(request: LimitRequest): LimitRequest {
  return request.verified || request.worldIds.length === 0
    ? request
    : { ...request, keyId: null, refundIp: null };
}

/** The part of a request that needs no versions. While they are unknown, only the IP limit can be checked. */
function withoutVersions(request: LimitRequest): LimitRequest {
  if (request.verified || request.worldIds.length === 0) return request;
  return { ...request, keyId: null, refundIp: null, worldIds: [], versions: [] };
}

function verdictFor(original: LimitRequest, sent: LimitRequest, verdict: LimitVerdict): LimitVerdict {
  return verdict.kind === 'pass' && sent !== original ? UNVERIFIED : verdict;
}

/** How long the caller has to verify a missing version: far longer than a read in Postgres takes. */
const TICKET_MS = 30_000;

/** The verdict from the script's answer to one request: a number, or for each world a ticket, a newer version or ''. */
function rateLimitVerdict(reply: unknown, request: LimitRequest): LimitVerdict {
  if (reply === 0) return PASS;
  if (reply === 1) return LIMITED.ip_minute;
  if (reply === 2) return LIMITED.key_minute;
  if (reply === 3) return LIMITED.key_hour;
  invariant(Array.isArray(reply), 'the rate limit script answers with a number or a list');
  const worlds = request.worldIds.flatMap((worldId, i): StaleWorld[] => {
    const known = String(reply[i]);
    if (known === '') return [];
    return known.startsWith('?')
      ? [{ worldId, state: 'missing', ticket: known }]
      : [{ worldId, state: 'newer', version: Number(known) }];
  });
  return { kind: 'stale', worlds };
}

export function luaScript(lua: string): LuaScript {
  return { lua, sha1: createHash('sha1').update(lua).digest('hex') };
}

/**
 * The key of a world holds its version. While a caller looks up a missing version, it holds a ticket: '?' and the time at
 * which the ticket was made, so that each ticket is different. A version that a writer publishes replaces the ticket.
 *
 * All counters are read before any is raised, and Redis runs the script as one step, so a limited call changes nothing.
 * One MGET reads all keys of a request, because most of the script's time goes into calls.
 */
const RATE_LIMIT_SCRIPT = luaScript(`
local noKey, ticketMs = ARGV[1], ARGV[2]
local ip = { limit = tonumber(ARGV[3]), lengthMs = ARGV[4] }
local minute = { limit = tonumber(ARGV[5]), lengthMs = ARGV[6] }
local hour = { limit = tonumber(ARGV[7]), lengthMs = ARGV[8] }
local keyAt, argAt = 0, 8

local function isFull(rule, count)
  return count and tonumber(count) >= rule.limit
end

local function charge(rule, key, count)
  if key == noKey then return end
  if count then redis.call('INCR', key) else redis.call('SET', key, 1, 'PX', rule.lengthMs) end
end

local function refund(key, count)
  if not count then return end
  if tonumber(count) > 1 then redis.call('DECR', key) else redis.call('DEL', key) end
end

local function makeTicket(key)
  local time = redis.call('TIME')
  local ticket = '?' .. time[1] .. '.' .. time[2]
  redis.call('SET', key, ticket, 'PX', ticketMs)
  return ticket
end

local function staleWorlds(firstKey, firstArg, values, worldCount)
  local answer
  for i = 1, worldCount do
    local known = values[4 + i]
    local version = known and tonumber(known)
    if not version or version > tonumber(ARGV[firstArg + i]) then
      if not answer then
        answer = {}
        for j = 1, worldCount do answer[j] = '' end
      end
      answer[i] = known or makeTicket(KEYS[firstKey + 4 + i])
    end
  end
  return answer
end

local function check(k, a, worldCount)
  local values = redis.call('MGET', unpack(KEYS, k + 1, k + 4 + worldCount))
  if isFull(ip, values[1]) then return 1 end
  local stale = staleWorlds(k, a, values, worldCount)
  if stale then
    charge(ip, KEYS[k + 1], values[1])
    return stale
  end
  local limited = isFull(minute, values[2]) and 2 or isFull(hour, values[3]) and 3
  if limited then
    refund(KEYS[k + 4], values[4])
    return limited
  end
  charge(ip, KEYS[k + 1], values[1])
  charge(minute, KEYS[k + 2], values[2])
  charge(hour, KEYS[k + 3], values[3])
  return 0
end

local verdicts = {}
while argAt < #ARGV do
  local worldCount = tonumber(ARGV[argAt + 1])
  verdicts[#verdicts + 1] = check(keyAt, argAt + 1, worldCount)
  keyAt = keyAt + 4 + worldCount
  argAt = argAt + 1 + worldCount
end
return verdicts
`);

/** If the commit fails, the published version is ahead of the truth. Each call of that world then asks Postgres, for this long. */
const PUBLISHED_MS = MINUTE_MS;
/** After this long idle worlds leave Redis, and any wrong version ends. It costs one read per world and hour. */
const CONFIRMED_MS = HOUR_MS;

/** For several pods: versions under the keys that the script of the rate limiter reads. */
export class RedisWorldVersions implements WorldVersions {
  readonly #port: RedisPort;
  readonly #names: RedisKeys;

  constructor(port: RedisPort, names: RedisKeys) {
    this.#port = port;
    this.#names = names;
  }

  async publish(worldId: number, version: number): Promise<boolean> {
    return (await this.#port.run(RAISE, [`${this.#names.world}${worldId}`], [version, PUBLISHED_MS])).ok;
  }

  async confirm(worldId: number, version: number): Promise<boolean> {
    return (await this.#port.run(RAISE, [`${this.#names.world}${worldId}`], [version, CONFIRMED_MS])).ok;
  }

  async restore(worldId: number, version: number, ticket: string): Promise<boolean> {
    return (await this.#port.run(REDEEM, [`${this.#names.world}${worldId}`], [version, CONFIRMED_MS, ticket]))
      .ok;
  }

  async knowsNewer(worldIds: readonly number[], versions: readonly number[]): Promise<boolean> {
    const names = worldIds.map((worldId) => `${this.#names.world}${worldId}`);
    const answer = await this.#port.sendPatiently((redis) => redis.mget(names));
    // A ticket is not a number.
    return answer.ok && answer.value.some((known, i) => Number(known) > (versions[i] as number));
  }
}

/** The version never falls, and its time to live is never shortened. A ticket is not a number, so it is replaced. */
const RAISE = luaScript(`
local known, version = tonumber(redis.call('GET', KEYS[1]) or ''), tonumber(ARGV[1])
if not known or known < version then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif known == version and redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
`);

const REDEEM = luaScript(`
if redis.call('GET', KEYS[1]) == ARGV[3] then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1
`);
