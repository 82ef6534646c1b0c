import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import type { WorldVersions } from '../redis/rateLimiter.ts';
import type { LogFollower } from './appliedTransactions.memory.ts';
import { type EntityKind, notifyPods, recordChange, selectTransactionId } from './changes.sql.ts';
import { countPodsBehind, FRESH_MS } from './pods.sql.ts';

/** Publishes versions of worlds to the other pods, through Redis if there is one. */
export type VersionPublisher = Pick<WorldVersions, 'publish' | 'confirm'>;

export interface WritePorts {
  readonly sql: Sql;
  readonly versions: VersionPublisher;
  /** Returns when the write holds on every pod; `published` says whether its versions reached the other pods. */
  awaitEverywhere(write: { xid: string; published: boolean }): Promise<void>;
  /** For validating what is written: an area of 2000 points takes some milliseconds. */
  readonly turns: WorkTurns<number | string>;
}

export interface WorldChange {
  readonly kind: EntityKind;
  readonly worldId: number;
  readonly entityIds: readonly number[];
}

/** What a write works with: its transaction, turns for computations, and a function to record what it changed. */
export interface WriteScope {
  readonly tx: Tx;
  readonly turns: WritePorts['turns'];
  changed(change: WorldChange): void;
}

/**
 * One administrative write. When this returns, it holds on every pod. The new versions of the changed worlds are
 * published before the commit, so no pod answers from older memory once the write is acknowledged. When they could not
 * be published, `awaitEverywhere` waits until the pods have followed the change log.
 *
 * The versions of worlds are raised in ascending order of their ids, so that two writes cannot deadlock.
 */
export async function writeWorlds<T>(ports: WritePorts, work: (scope: WriteScope) => Promise<T>): Promise<T> {
  const { result, xid, versions, published } = await ports.sql.begin(async (tx) => {
    const changes: WorldChange[] = [];
    const result = await work({ tx, turns: ports.turns, changed: (change) => void changes.push(change) });
    const versions = new Map<number, number>();
    for (const change of changes.toSorted((a, b) => a.worldId - b.worldId)) {
      versions.set(change.worldId, await recordChange(tx, change));
    }
    const xid = await selectTransactionId(tx);
    let published = true;
    for (const [worldId, version] of versions) {
      published = (await ports.versions.publish(worldId, version)) && published;
    }
    if (changes.length > 0) await notifyPods(tx);
    return { result, xid, versions, published };
  });
  if (versions.size > 0) {
    let confirmed = published;
    for (const [worldId, version] of versions) {
      confirmed = (await ports.versions.confirm(worldId, version)) && confirmed;
    }
    await ports.awaitEverywhere({ xid, published: confirmed });
  }
  return result as T;
}

/**
 * The writes of a pod by account, each on its share of the connections. One is answered once this pod has followed it, and
 * the others have or know of its version.
 */
export function writesOfPod({
  of,
  service,
  follower,
  ...ports
}: Pick<WritePorts, 'versions' | 'turns'> & {
  readonly of: (accountId: number) => Sql;
  readonly service: Sql;
  readonly follower: LogFollower;
}): (accountId: number) => WritePorts {
  const awaitEverywhere: WritePorts['awaitEverywhere'] = async ({ xid, published }) => {
    await follower.catchUp();
    if (!published) await awaitPods(service, xid);
  };
  return (accountId) => ({ ...ports, sql: of(accountId), awaitEverywhere });
}

/**
 * A little longer than a pod treats its memory as fresh. A pod that has not followed the write by then asks Postgres
 * before each answer, so the write holds there too, or it has lost Postgres.
 */
const AWAIT_PODS_LIMIT_MS = FRESH_MS + 500;
const POLL_MS = 20;

/** Waits until every live pod has applied the transaction `xid`. False when one has not within the limit. */
export async function awaitPods(sql: Sql, xid: string): Promise<boolean> {
  const untilMs = performance.now() + AWAIT_PODS_LIMIT_MS;
  while ((await countPodsBehind(sql, xid)) > 0) {
    if (performance.now() > untilMs) return false;
    await sleep(POLL_MS);
  }
  return true;
}
