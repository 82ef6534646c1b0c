import { DeadlineExceeded } from '../lib/deadline.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { openPool, type SqlOptions } from './connection.ts';
import { type Sql, sqlOn } from './sql.ts';

/** How long a statement or transaction waits for a connection. The caller has its answer by then. */
const WAIT_LIMIT_MS = 10_000;

export interface ShareOptions extends SqlOptions {
  /** Connections of one key at a time. */
  readonly perKey: number;
  /** Statements and transactions that may wait, of one key and of all keys. Further ones reject. */
  readonly waitingPerKey: number;
  readonly waiting: number;
}

/**
 * Connections that keys (accounts, addresses) share fairly. A free connection goes to the next key in turn, and no key
 * holds more than its share. What waits holds no connection. A transaction must not use the client of the same key
 * beside it: that would wait for the connection of the transaction.
 */
export class SqlShares<Key> {
  readonly #pool: ReturnType<typeof openPool>;
  readonly #slots: FairSemaphore<Key>;

  constructor(url: string, options: ShareOptions) {
    const { maxConnections, perKey, waiting, waitingPerKey } = options;
    this.#pool = openPool(url, options);
    this.#slots = new FairSemaphore({
      running: maxConnections,
      runningPerKey: perKey,
      waiting,
      waitingPerKey,
    });
  }

  /** A client on the share of `key`. Its statements reject with Overloaded when too many of them wait. */
  of(key: Key): Sql {
    return sqlOn(this.#pool, (work) => this.#limited(key, work));
  }

  /** Waits for what runs, then closes every connection. */
  end(): Promise<void> {
    return this.#pool.end();
  }

  #limited<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const askedAtMs = performance.now();
    return this.#slots.run(key, () => {
      if (performance.now() - askedAtMs > WAIT_LIMIT_MS)
        throw new DeadlineExceeded('waiting for a connection took too long');
      return work();
    });
  }
}
