import { DeadlineExceeded } from '../base/deadline.ts';
import { FairSemaphore } from '../base/fairSemaphore.ts';
import { openPool, type Sql, type SqlOptions, sqlOn } from './sql.ts';

/** How long a statement or transaction waits for a connection; who asked has had an answer by then. */
const WAIT_LIMIT_MS = 10_000;

export interface ShareOptions extends SqlOptions {
  /** Connections that one key has at once. */
  readonly perKey: number;
  /** Statements and transactions that wait, of one key and of all; beyond it they are refused. */
  readonly waitingPerKey: number;
  readonly waiting: number;
}

/**
 * Connections that keys (accounts, addresses) share fairly: one that becomes free goes to the next key in turn, and no
 * key holds more than its share. What waits holds no connection. A transaction must not ask anything beside itself by
 * way of the same key: it would wait for its own connection.
 */
export class SqlShares<Key> {
  readonly #pool: ReturnType<typeof openPool>;
  readonly #places: FairSemaphore<Key>;

  constructor(url: string, options: ShareOptions) {
    const { maxConnections, perKey, waiting, waitingPerKey } = options;
    this.#pool = openPool(url, options);
    this.#places = new FairSemaphore({
      running: maxConnections,
      runningPerKey: perKey,
      waiting,
      waitingPerKey,
    });
  }

  /** Statements and transactions on the share of `key`. They reject with Overloaded when too many of them wait. */
  of(key: Key): Sql {
    return sqlOn(this.#pool, (work) => this.#inTurn(key, work));
  }

  /** Waits for what runs, then closes every connection. */
  end(): Promise<void> {
    return this.#pool.end();
  }

  #inTurn<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const askedAtMs = performance.now();
    return this.#places.run(key, () => {
      if (performance.now() - askedAtMs > WAIT_LIMIT_MS)
        throw new DeadlineExceeded('waiting for a connection took too long');
      return work();
    });
  }
}
