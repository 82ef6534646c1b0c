import { invariant } from '../lib/invariant.ts';
import { LIMITED, type LimitRequest, type LimitVerdict, PASS, type StaleWorld } from './rateLimiter.ts';
import type { RedisKeys } from './redisKeys.ts';
import { luaScript } from './redisPort.ts';

/** How long the caller has to verify a missing version: far longer than a read in Postgres takes. */
const TICKET_MS = 30_000;

/** In place of a key when the request has none or the limit is off. Such a window is neither read nor written. */
const NO_KEY = '';

/** A limit of 0 is off. */
interface WindowRule {
  readonly limit: number;
  readonly lengthMs: number;
}

export interface RateLimitRules {
  readonly ipMinute: WindowRule;
  readonly keyMinute: WindowRule;
  readonly keyHour: WindowRule;
}

/** The arguments of one run of the script, which checks several requests one after the other. */
export function rateLimitArguments(
  requests: readonly LimitRequest[],
  names: RedisKeys,
  { ipMinute, keyMinute, keyHour }: RateLimitRules,
): { keys: string[]; args: number[] } {
  const keys: string[] = [];
  const args = [TICKET_MS];
  for (const rule of [ipMinute, keyMinute, keyHour]) args.push(rule.limit, rule.lengthMs);
  for (const { ip, keyId, refundIp, worldIds, versions, verified } of requests) {
    keys.push(
      ip === null || ipMinute.limit === 0 ? NO_KEY : names.ipMinute(ip),
      keyId === null || keyMinute.limit === 0 ? NO_KEY : names.keyMinute(keyId),
      keyId === null || keyHour.limit === 0 ? NO_KEY : names.keyHour(keyId),
      refundIp === null || ipMinute.limit === 0 ? NO_KEY : names.ipMinute(refundIp),
    );
    args.push(verified ? 0 : worldIds.length);
    for (let i = 0; i < worldIds.length && !verified; i++) {
      keys.push(names.world(worldIds[i] as number));
      args.push(versions[i] as number);
    }
  }
  return { keys, args };
}

/** The verdict from the script's answer to one request: a number, or for each world a ticket, a newer version or ''. */
export function rateLimitVerdict(reply: unknown, request: LimitRequest): LimitVerdict {
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

/**
 * The key of a world holds its version. While a caller looks up a missing version, it holds a ticket: '?' and the time at
 * which the ticket was made, so that each ticket is different. A version that a writer publishes replaces the ticket.
 *
 * All counters are read before any is raised, and Redis runs the script as one step, so a limited call changes nothing.
 * One MGET reads all keys of a request, because most of the script's time goes into calls.
 */
export const RATE_LIMIT_SCRIPT = luaScript(`
local ticketMs = ARGV[1]
local ip = { limit = tonumber(ARGV[2]), lengthMs = ARGV[3] }
local minute = { limit = tonumber(ARGV[4]), lengthMs = ARGV[5] }
local hour = { limit = tonumber(ARGV[6]), lengthMs = ARGV[7] }
local keyAt, argAt = 0, 7

local function isFull(rule, count)
  return count and tonumber(count) >= rule.limit
end

local function charge(rule, key, count)
  if key == '${NO_KEY}' then return end
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
