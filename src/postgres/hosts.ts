import type { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import type { ClientBase, ClientConfig, PoolClient, PoolConfig, QueryConfig } from 'pg';
import { Client, Pool } from 'pg';
import { invariant } from '../lib/errors.ts';
import { type PostgresUrl, parsePostgresUrl, parseReplicaUrl, type Target } from './postgresUrl.ts';
import { isUnavailable, ofPostgres, PostgresUnreachable } from './sqlErrors.ts';

/** How long a connection to the only host may take, and to one of several, where another one may be the primary. */
const CONNECT_LIMIT_MS = 5_000;
const CONNECT_LIMIT_OF_SEVERAL_MS = 2_000;
const ANSWER_LIMIT_MS = 2_000;
/** A server closes a connection at once when it is told to. A silent one never does, and then this side closes it. */
const CLOSE_LIMIT_MS = 2_000;
/**
 * A connection that carries nothing for so long, as while a statement takes hours, is asked for by the system, so that no
 * firewall forgets it, and ends ten seconds later when its other end is gone.
 */
const KEEP_ALIVE_DELAY_MS = 30_000;

type ClientClass = new (config?: ClientConfig) => Client;
/** As the driver declares it. */
type OnConnect = ((error: Error) => void) | ((error: null, client: Client) => void);

/**
 * The hosts of a URL, of which one is the primary, or of which each is a replica. All connections of a pod are made
 * through one object, so that what one of them finds out holds for all: the host that served last is tried first, and
 * when another one serves, the connections to all others are closed. A server that hangs would keep them open, and one
 * that was cut off might still take writes.
 */
export class PostgresHosts {
  /** That of the driver, to the host that is to be tried first when it is constructed. */
  readonly Client: ClientClass;
  readonly #url: PostgresUrl;
  readonly #onMoved: (host: string) => void;
  readonly #hostOf = new WeakMap<ClientBase, number>();
  readonly #open = new Set<ClientBase>();
  #first = 0;
  #serving: number | null = null;

  /**
   * `onMoved` is told when a host serves that is another one than before. Throws on a malformed URL and when a file that
   * it names cannot be read.
   */
  constructor(
    text: string,
    onMoved: (host: string) => void = () => undefined,
    kind: 'primary' | 'replica' = 'primary',
  ) {
    const parsed = kind === 'primary' ? parsePostgresUrl(text) : parseReplicaUrl(text);
    invariant(parsed.ok, 'the URL of Postgres is malformed');
    this.#url = parsed.value;
    this.#onMoved = onMoved;
    this.Client = this.#clientClass();
  }

  get areSeveral(): boolean {
    return this.#url.hosts.length > 1;
  }

  /** A pool whose connections have entered a host with `prepare`. For each of them every host is tried. */
  openPool(config: PoolConfig, prepare: (client: ClientBase) => Promise<void>): Pool {
    const trying = <T>(connect: () => Promise<T>) => this.trying(connect);
    const PoolOfHosts = class extends Pool {
      override connect(): Promise<PoolClient> {
        return trying(() => super.connect());
      }
    };
    return new PoolOfHosts({
      ...config,
      Client: this.Client,
      connectionTimeoutMillis: CONNECT_LIMIT_MS,
      onConnect: (client) => this.enter(client, () => prepare(client)),
    });
  }

  /** The result of `connect`, which is called again while hosts are passed over, once for each host at most. */
  async trying<T>(connect: () => Promise<T>): Promise<T> {
    let failure: unknown = null;
    for (let tried = 0; tried < this.#url.hosts.length; tried++) {
      try {
        return await connect();
      } catch (error) {
        // Any other error is one that the primary gives, or the end of a wait for a connection that becomes free.
        if (!isUnavailable(error)) throw error;
        // That a host is a replica says nothing about why the primary does not answer, and the other way round.
        if (failure === null || isOfOtherKind(failure)) failure = error;
      }
    }
    throw failure;
  }

  /** Makes sure that the new connection is to a server as the URL asks for it, and prepares it. Rejects if it is not. */
  async enter(client: ClientBase, prepare: () => Promise<void> = async () => undefined): Promise<void> {
    try {
      if (this.#url.target !== null) await checkServer(client, this.#url.target);
      await prepare();
    } catch (error) {
      this.passOver(client);
      throw ofPostgres(error);
    }
    this.#serves(client);
  }

  /** Tries the host after that of `client` first from here on, unless another one already is. */
  passOver(client: ClientBase): void {
    if (this.#hostOf.get(client) === this.#first) this.#first = (this.#first + 1) % this.#url.hosts.length;
  }

  /** Ends all connections, also those that wait for an answer, and tries the next host first from here on. */
  leave(): void {
    this.#first = (this.#first + 1) % this.#url.hosts.length;
    for (const client of this.#open) cut(client);
  }

  #clientClass(): ClientClass {
    const add = (client: ClientBase, host: number) => {
      this.#hostOf.set(client, host);
      hostsOf.set(client, this);
      this.#open.add(client);
      client.once('end', () => this.#open.delete(client));
    };
    const passOver = (client: ClientBase) => this.passOver(client);
    const configs = this.#url.hosts.map(({ url }) => configOf(url, this.#url.files.length > 0));
    const choose = () => ({ index: this.#first, own: configs[this.#first] });
    const limitMs = this.areSeveral ? CONNECT_LIMIT_OF_SEVERAL_MS : CONNECT_LIMIT_MS;
    return class extends Client {
      constructor(config?: ClientConfig) {
        const { index, own } = choose();
        super({
          ...config,
          ...own,
          connectionTimeoutMillis: Math.min(limitMs, config?.connectionTimeoutMillis ?? limitMs),
          keepAlive: true,
          keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
        });
        add(this, index);
      }

      override connect(): Promise<Client>;
      override connect(done: OnConnect): void;
      override connect(done?: OnConnect): Promise<Client> | undefined {
        if (done === undefined)
          return new Promise((resolve, reject) => {
            this.connect((error: Error | null) => (error ? reject(error) : resolve(this)));
          });
        const tell = done as (error: Error | null, client?: Client) => void;
        // The pool listens for errors of the client from within `tell`, so it is called at once.
        super.connect((error: Error | null) => {
          if (!error) return tell(null, this);
          passOver(this);
          tell(ofPostgres(error) as Error);
        });
        return undefined;
      }

      override end(): Promise<void>;
      override end(done: (error: Error) => void): void;
      override end(done?: (error: Error) => void): Promise<void> | undefined {
        const limit = setTimeout(() => cut(this), CLOSE_LIMIT_MS).unref();
        this.once('end', () => clearTimeout(limit));
        if (done === undefined) return super.end();
        super.end(done);
        return undefined;
      }
    };
  }

  #serves(client: ClientBase): void {
    const host = this.#hostOf.get(client);
    if (host === undefined || !this.#open.has(client)) return; // closed in the meantime
    this.#first = host;
    if (host === this.#serving) return;
    const isFirst = this.#serving === null;
    this.#serving = host;
    if (isFirst) return;
    for (const other of this.#open) if (this.#hostOf.get(other) !== host) cut(other);
    this.#onMoved(this.#url.hosts[host]?.name as string);
  }
}

const hostsOf = new WeakMap<ClientBase, PostgresHosts>();

/** A new connection, not open yet, to the host of `client`, or to the primary if another host is that by now. */
export function clientBeside(client: ClientBase, config: ClientConfig): Client {
  const hosts = hostsOf.get(client);
  invariant(hosts !== undefined, 'every connection is made by PostgresHosts');
  return new hosts.Client(config);
}

/**
 * The name of a session of this service, as pg_stat_activity shows it. A version that stores what older ones cannot read
 * gives its sessions another name, and waits until no session of the older ones is left.
 */
export function sessionName(task: string): string {
  return `fleet ${task}`;
}

/**
 * Files of certificates are read here, once. The driver reads them for every connection, and throws where nobody expects
 * it when one is missing: the process would end.
 */
function configOf(url: string, namesFiles: boolean): ClientConfig {
  if (!namesFiles) return { connectionString: url };
  const { ssl, sslNegotiation } = new Client(url) as unknown as {
    ssl: ConnectionOptions;
    sslNegotiation: string;
  };
  const rest = new URL(url);
  for (const parameter of [...rest.searchParams.keys()])
    if (/^ssl|^uselibpqcompat$/.test(parameter)) rest.searchParams.delete(parameter);
  return { connectionString: rest.href, ssl, sslnegotiation: sslNegotiation } as ClientConfig;
}

async function checkServer(client: ClientBase, target: Target): Promise<void> {
  const { rows } = await client.query<{ replica: boolean; readonly: boolean }>({
    text: "select pg_is_in_recovery() as replica, current_setting('transaction_read_only') = 'on' as readonly",
    query_timeout: ANSWER_LIMIT_MS,
  } as QueryConfig);
  const isReplica = rows[0]?.replica !== false;
  if (target === 'standby' && !isReplica) throw new PostgresUnreachable({ code: NO_REPLICA });
  if (target === 'standby') return;
  if (isReplica) throw new PostgresUnreachable({ code: REPLICA });
  if (target === 'read-write' && rows[0]?.readonly) throw new PostgresUnreachable({ code: 'READ_ONLY' });
}

const REPLICA = 'REPLICA';
/** The code of a PostgresUnreachable: a replica was to be reached, and the server is none. */
export const NO_REPLICA = 'NO_REPLICA';

function isOfOtherKind(error: unknown): boolean {
  return error instanceof PostgresUnreachable && (error.code === REPLICA || error.code === NO_REPLICA);
}

/** Ends a connection whose server may not answer any more. */
export function cut(client: ClientBase): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}
