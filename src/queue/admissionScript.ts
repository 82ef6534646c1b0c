import { invariant } from '../base/invariant.ts';
import { type GateRequest, type GateVerdict, LIMITED, PASS, type StaleWorld } from './gate.ts';
import type { RedisKeys } from './redisKeys.ts';
import { luaScript } from './redisPort.ts';

/** How long a missing version may be under verification: far longer than a read in Postgres takes. */
const TICKET_MS = 30_000;

/** Stands where a request has no such key, or the limit is off: such a window is neither read nor written. */
const NO_KEY = '';

/** A limit of 0 is off. */
interface WindowRule {
  readonly limit: number;
  readonly lengthMs: number;
}

export interface AdmissionRules {
  readonly ipMinute: WindowRule;
  readonly keyMinute: WindowRule;
  readonly keyHour: WindowRule;
}

/** The arguments of one run of the script for several requests, judged one after the other. */
export function admissionArguments(
  requests: readonly GateRequest[],
  names: RedisKeys,
  { ipMinute, keyMinute, keyHour }: AdmissionRules,
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

/** The script's answer to one request: a number, or for each world a ticket, a newer version or ''. */
export function admissionVerdict(reply: unknown, request: GateRequest): GateVerdict {
  if (reply === 0) return PASS;
  if (reply === 1) return LIMITED.ip_minute;
  if (reply === 2) return LIMITED.key_minute;
  if (reply === 3) return LIMITED.key_hour;
  invariant(Array.isArray(reply), 'the admission script answers with a number or a list');
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
 * A world's key holds its version, or '?' and a ticket while somebody looks a missing one up. A ticket is unlike
 * any other by the time it was made at; a writer's version replaces it.
 *
 * Counters are read before any is raised, and the script runs as one step, so a refused call leaves no trace. All
 * keys of a request are read by one MGET: most of the script's time is spent in calls.
 */
export const ADMISSION = luaScript(`
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

local function ticketFor(key)
  local time = redis.call('TIME')
  local ticket = '?' .. time[1] .. '.' .. time[2]
  redis.call('SET', key, ticket, 'PX', ticketMs)
  return ticket
end

local function staleness(firstKey, firstArg, values, worldCount)
  local answer
  for i = 1, worldCount do
    local known = values[4 + i]
    local version = known and tonumber(known)
    if not version or version > tonumber(ARGV[firstArg + i]) then
      if not answer then
        answer = {}
        for j = 1, worldCount do answer[j] = '' end
      end
      answer[i] = known or ticketFor(KEYS[firstKey + 4 + i])
    end
  end
  return answer
end

local function admit(k, a, worldCount)
  local values = redis.call('MGET', unpack(KEYS, k + 1, k + 4 + worldCount))
  if isFull(ip, values[1]) then return 1 end
  local stale = staleness(k, a, values, worldCount)
  if stale then
    charge(ip, KEYS[k + 1], values[1])
    return stale
  end
  local refusal = isFull(minute, values[2]) and 2 or isFull(hour, values[3]) and 3
  if refusal then
    refund(KEYS[k + 4], values[4])
    return refusal
  end
  charge(ip, KEYS[k + 1], values[1])
  charge(minute, KEYS[k + 2], values[2])
  charge(hour, KEYS[k + 3], values[3])
  return 0
end

local verdicts = {}
while argAt < #ARGV do
  local worldCount = tonumber(ARGV[argAt + 1])
  verdicts[#verdicts + 1] = admit(keyAt, argAt + 1, worldCount)
  keyAt = keyAt + 4 + worldCount
  argAt = argAt + 1 + worldCount
end
return verdicts
`);
