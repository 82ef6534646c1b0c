import type { WorkTurns } from '../base/workTurns.ts';
import { CHANGE_CHANNEL, type ChangeKind, recordChange } from '../store/changes.ts';
import type { Sql, Tx } from '../store/sql.ts';

/** Where the versions of worlds are told to the other pods (Redis), or nowhere. */
export interface VersionPublisher {
  /** Before the commit. False when nobody could be told. */
  publish(worldId: number, version: number): Promise<boolean>;
  /** After the commit: Redis may have been emptied since. False when nobody could be told. */
  confirm(worldId: number, version: number): Promise<boolean>;
}

export interface WritePorts {
  readonly sql: Sql;
  readonly versions: VersionPublisher;
  /** Returns when the write holds everywhere: `published` says whether the versions reached the other pods. */
  settle(write: { xid: string; published: boolean }): Promise<void>;
  /** Where what is written is judged: an area of 2000 points takes some milliseconds. */
  readonly turns: WorkTurns<number | string>;
}

export interface WorldChange {
  readonly kind: Exclude<ChangeKind, 'positions'>;
  readonly worldId: number;
  readonly entityIds: readonly number[];
}

/** The transaction of a write, the turns in which it computes, and the way to say what it changed. */
export interface WriteScope {
  readonly tx: Tx;
  readonly turns: WritePorts['turns'];
  changed(change: WorldChange): void;
}

/**
 * One administrative write, known to every pod when this returns. The changed worlds' new versions are published
 * before the commit, so no pod can answer from older memory once the write is acknowledged; when they could not be
 * published, `settle` waits for the pods to have followed the feed.
 *
 * Worlds are raised in ascending order, so two writes never wait for each other in a circle.
 */
export async function writeWorlds<T>(ports: WritePorts, work: (scope: WriteScope) => Promise<T>): Promise<T> {
  const { result, xid, versions, published } = await ports.sql.begin(async (tx) => {
    const changes: WorldChange[] = [];
    const result = await work({ tx, turns: ports.turns, changed: (change) => void changes.push(change) });
    const versions = new Map<number, number>();
    for (const change of changes.toSorted((a, b) => a.worldId - b.worldId)) {
      versions.set(change.worldId, await recordChange(tx, change));
    }
    const [row] = await tx<{ xid: string }[]>`select pg_current_xact_id()::text as xid`;
    let published = true;
    for (const [worldId, version] of versions) {
      published = (await ports.versions.publish(worldId, version)) && published;
    }
    if (changes.length > 0) await tx`select pg_notify(${CHANGE_CHANNEL}, '')`;
    return { result, xid: row?.xid ?? '0', versions, published };
  });
  if (versions.size > 0) {
    let known = published;
    for (const [worldId, version] of versions) {
      known = (await ports.versions.confirm(worldId, version)) && known;
    }
    await ports.settle({ xid, published: known });
  }
  return result as T;
}
