import { HOUR_MS, MINUTE_MS } from '../lib/time.ts';
import { luaScript, type RedisKeys, type RedisPort } from './redisConnection.ts';

/**
 * Publishes the newest version of a world to all pods, so that none answers from older memory. Every method resolves to
 * false when it could not: then a writer must wait until the pods have followed the change log.
 */
export interface WorldVersions {
  /** Called by a writer before its commit, so that no pod can miss the version between commit and publication. */
  publish(worldId: number, version: number): Promise<boolean>;
  /** Called by a writer after its commit and before its answer: Redis may have been emptied since the publication. */
  confirm(worldId: number, version: number): Promise<boolean>;
  /**
   * Called by a reader that found the version missing and then read it in Postgres. Changes nothing when the ticket is
   * gone: then a writer has published a version in between, and this one may be older.
   */
  restore(worldId: number, version: number, ticket: string): Promise<boolean>;
}

/** If the commit fails, the published version is ahead of the truth. Each call of that world then asks Postgres, for this long. */
const PUBLISHED_MS = MINUTE_MS;
/** After this long idle worlds leave Redis, and any wrong version ends. It costs one read per world and hour. */
const CONFIRMED_MS = HOUR_MS;

export class RedisWorldVersions implements WorldVersions {
  readonly #port: RedisPort;
  readonly #names: RedisKeys;

  constructor(port: RedisPort, names: RedisKeys) {
    this.#port = port;
    this.#names = names;
  }

  async publish(worldId: number, version: number): Promise<boolean> {
    return (await this.#port.run(RAISE, [this.#names.world(worldId)], [version, PUBLISHED_MS])).ok;
  }

  async confirm(worldId: number, version: number): Promise<boolean> {
    return (await this.#port.run(RAISE, [this.#names.world(worldId)], [version, CONFIRMED_MS])).ok;
  }

  async restore(worldId: number, version: number, ticket: string): Promise<boolean> {
    return (await this.#port.run(REDEEM, [this.#names.world(worldId)], [version, CONFIRMED_MS, ticket])).ok;
  }
}

/** For a single process, which has no other pods to tell. */
export const localWorldVersions: WorldVersions = {
  publish: async () => true,
  confirm: async () => true,
  restore: async () => true,
};

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
