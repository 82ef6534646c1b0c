import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import type { SqlShares } from '../postgres/connections.ts';
import { type Lend, type Sql, sqlOn, txOn, type UseBytes } from '../postgres/sql.ts';
import {
  isUnavailable,
  PostgresUnreachable,
  type Unavailability,
  unavailability,
} from '../postgres/sqlErrors.ts';
import type { SqlText } from '../postgres/sqlText.ts';
import type { Standing } from './logPlace.ts';
import { awaitLevel, type ReplicaWatch, type SharedPlaces } from './replicaWatch.ts';

interface ReplicaReadPorts {
  readonly primary: Pick<SqlShares<number>, 'lend'>;
  readonly replica: Pick<SqlShares<number>, 'lend'>;
  readonly watch: Pick<ReplicaWatch, 'state' | 'doubt'>;
  readonly places: Pick<SharedPlaces, 'read'>;
  readonly podId: string;
  /** Told of each statement or transaction, by the server that is asked last. */
  readonly count: (server: 'replica' | 'primary') => void;
}

/**
 * Reads of callers that a replica answers where it can, and else the primary. Both give the same answers: a statement is sent
 * to the replica once that has replayed everything which was acknowledged before. So a later statement never sees less than
 * an earlier one, whichever server answers. What the replica does not finish, the primary is asked from the beginning.
 */
export class ReplicaReads {
  readonly #ports: ReplicaReadPorts;

  constructor(ports: ReplicaReadPorts) {
    this.#ports = ports;
  }

  /** A client on the share of an account. Every statement and transaction of it must only read. */
  readonly of = (accountId: number): Sql => {
    const lend: Lend = (work, closes) => this.#lend(accountId, work, closes);
    const copy = (query: SqlText, use: UseBytes) => copyWhole(lend, query, use);
    return Object.assign(
      sqlOn(lend, () => Promise.resolve()),
      { copy },
    );
  };

  async #lend<T>(accountId: number, work: Work<T>, closes?: boolean): Promise<T> {
    const { primary, watch, count } = this.#ports;
    if (watch.state === 'serving') {
      try {
        const result = await this.#onReplica(accountId, work, closes);
        count('replica');
        return result;
      } catch (error) {
        if (!this.#isPassedOn(error)) throw error;
      }
    }
    count('primary');
    return primary.lend(accountId)(work, closes);
  }

  async #onReplica<T>(accountId: number, work: Work<T>, closes?: boolean): Promise<T> {
    const { replica, places, podId } = this.#ports;
    const place = await places.read().catch(() => Promise.reject(new NotLevel('unknown')));
    return replica.lend(accountId)(async (client) => {
      // Asked on this connection: behind one address there may be several replicas.
      const { standing } = await awaitLevel(txOn(client), podId, place);
      if (standing !== 'level') throw new NotLevel(standing);
      return work(client);
    }, closes);
  }

  /** True for what says nothing of the statement itself: a replica that is behind or away, or has ended it to go on replaying. */
  #isPassedOn(error: unknown): boolean {
    if (error instanceof NotLevel) this.#ports.watch.doubt(error.state);
    else if (error instanceof PostgresUnreachable) this.#ports.watch.doubt('away');
    else return isUnavailable(error) && !OF_STATEMENT.includes(unavailability(error));
    return true;
  }
}

type Work<T> = (client: PoolClient) => Promise<T>;

/**
 * What the primary is not to be asked for. A statement that writes is a defect of this service. One that took longer than it
 * may would do so there too, and one that waited too long has others of its account before it, and nobody behind it any more.
 */
const OF_STATEMENT: readonly (Unavailability | null)[] = ['read_only', 'canceled', 'no_answer'];

/** The replica does not have yet, or never will, what the primary has, as far as that is known. */
class NotLevel extends Error {
  override name = 'NotLevel';
  readonly state: Exclude<Standing, 'level'> | 'unknown';

  constructor(state: NotLevel['state']) {
    super('the replica is not level with the primary');
    this.state = state;
  }
}

/** Hands over what was copied when all of it is there: a copy that ended early is made again by the primary. */
async function copyWhole(lend: Lend, query: SqlText, use: UseBytes): Promise<void> {
  const pieces = await lend(async (client) => {
    const copied: Buffer[] = [];
    await txOn(client).copy(query, (bytes) => void copied.push(bytes));
    return copied;
  });
  for (const piece of pieces) {
    await use(piece);
    await nextTurn();
  }
}
