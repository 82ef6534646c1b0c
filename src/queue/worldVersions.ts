import type { RedisKeys } from './redisKeys.ts';
import { luaScript, type RedisPort } from './redisPort.ts';

/**
 * Tells all pods the newest version of a world, so that none answers from older memory. Every method returns
 * whether the pods could be told; when not, a writer must wait until they have followed the change feed.
 */
export interface WorldVersions {
  /** By a writer before its commit, so that there is no moment between the commit and the news of it. */
  publish(worldId: number, version: number): Promise<boolean>;
  /** By a writer after its commit, before it answers: Redis may have been emptied since the publication. */
  confirm(worldId: number, version: number): Promise<boolean>;
  /**
   * By a reader that found the version missing and has since read it in Postgres. Does nothing (true) when the
   * ticket no longer holds: then a writer spoke in between, and this version may be the older one.
   */
  restore(worldId: number, version: number, ticket: string): Promise<boolean>;
}

/** A commit that fails leaves its version ahead of the truth, and each call of that world asks Postgres, for this long. */
const PUBLISHED_MS = 60_000;
/** Idle worlds leave Redis, and whatever went wrong with a version ends, after this long; it costs one read an hour. */
const CONFIRMED_MS = 3_600_000;

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

/** The form of a single process: there is nobody else to tell. */
export const localWorldVersions: WorldVersions = {
  publish: async () => true,
  confirm: async () => true,
  restore: async () => true,
};

/** The value never falls, and an equal one never comes to live shorter. A ticket is no number, so it is replaced. */
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
