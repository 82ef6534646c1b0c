/** How far a server is, and in which history: the primary with what it has written, a replica with what it has replayed. */
export interface LogPlace {
  /** The system identifier of its cluster. */
  readonly system: string;
  /** The last start of the primary that it knows of (table server_start). */
  readonly start: number | null;
  /** When the pod that asks last reported to the primary, as this server shows it (table pod). */
  readonly reportedAtMs: number | null;
  /** In the log, in bytes. */
  readonly walBytes: number;
  readonly isReplica: boolean;
}

/**
 * How a replica compares with a place in the log of the primary. `level`: it has all that the primary had there. `behind`:
 * it does not have it yet. `other_history`: it has a log as long, and lacks what is in that of the primary. `no_replica`:
 * it was promoted.
 */
export type Standing = 'level' | 'behind' | 'other_cluster' | 'other_history' | 'no_replica';

/**
 * Positions can be compared only within one log. A replica that follows a former primary reads another log. It lacks the
 * start and the reports that the present primary has recorded since the promotion.
 */
export function standingOf(replica: LogPlace, primary: LogPlace): Standing {
  if (!replica.isReplica) return 'no_replica';
  if (replica.system !== primary.system) return 'other_cluster';
  // Before its first report a pod cannot tell one log from another.
  if (replica.walBytes < primary.walBytes || primary.reportedAtMs === null) return 'behind';
  const hasReport = replica.reportedAtMs !== null && replica.reportedAtMs >= primary.reportedAtMs;
  return hasReport && replica.start === primary.start ? 'level' : 'other_history';
}

interface Sample {
  readonly walBytes: number;
  readonly atMs: number;
}

/** With more, some of those in between are forgotten. */
const SAMPLES_MAX = 300;

/** Knows how far a replica is behind in time, from the places that the primary had at some times. */
export class ReplicaLag {
  /** Oldest first. The replica has replayed the first one, if it has ever caught up. */
  readonly #samples: Sample[] = [];
  #levelMs: number | null = null;

  /** The primary was at `walBytes` at `atMs`, and the replica there `afterMs` later. */
  level(walBytes: number, atMs: number, afterMs: number): void {
    this.#samples.splice(0, Infinity, { walBytes, atMs });
    this.#levelMs = afterMs;
  }

  /** The primary was at `walBytes` at `atMs`, and the replica is only at `replayedBytes`; null where that is not known. */
  behind(walBytes: number, atMs: number, replayedBytes: number | null): void {
    const samples = this.#samples;
    this.#levelMs = null;
    samples.push({ walBytes, atMs });
    if (replayedBytes !== null)
      while (samples[1] !== undefined && samples[1].walBytes <= replayedBytes) samples.shift();
    if (samples.length > SAMPLES_MAX) samples.splice(1, 1);
  }

  /** How long the replica has been behind; once it has caught up, how long that took. */
  lagMs(nowMs: number): number {
    const [first] = this.#samples;
    return this.#levelMs ?? (first === undefined ? 0 : nowMs - first.atMs);
  }
}
