import type { Sql } from '../../src/postgres/sql.ts';
import { openPod, type PodWorker } from '../setup/pods.ts';
import { INGEST_TOKEN } from '../setup/points.ts';
import { type PlaceSql, seedDevices } from './seeds.ts';

/**
 * The worst that one caller can do to others within its limits. attacks.ts lists them all. Each attack has its own
 * accounts, devices and addresses, so any two can run at the same time.
 */
export interface Attack {
  /** As it appears in the results. */
  readonly name: string;
  /** The number of accounts that take part, each with a key: 1 unless it says so. 0 when it needs no credentials. */
  readonly accounts?: number;
  /** Stores what the accounts own, before any pod starts. */
  readonly seed?: (seeding: AttackSeeding) => Promise<void>;
  /** Runs in its own process. Ends after the last answer, or when `attacker.stopped` fires. */
  readonly run: (attacker: Attacker) => Promise<void>;
  /** Runs until it is stopped. */
  readonly lasts?: true;
  /** What it stores is in the memory of every pod from then on, so that is not held against it. */
  readonly stays?: true;
  /** What the victim calls in addition to its usual calls. */
  readonly asks?: 'login' | 'small import';
}

/** smoke: only shows that it works. full: a hostile caller. torture: a hostile caller with more time. */
export type Scale = 'smoke' | 'full' | 'torture';

export interface AttackAccount {
  readonly email: string;
  readonly accountId: number;
  readonly worldId: number;
  readonly key: string;
  /** An address in 10/8 that only this account uses. */
  readonly address: string;
}

/** Plain values, which are sent to the process of the attacker. */
export interface AttackSetup {
  readonly scale: Scale;
  readonly accounts: readonly AttackAccount[];
  /** The attacker's webhook receiver: `https://127.0.0.1:<port>`. It never answers paths below /hang. */
  readonly receiverUrl: string;
  /** The first of ten million IMEIs that belong to this attack. */
  readonly firstImei: number;
}

/** What an attack gets when it is seeded and when it runs. */
interface AttackSide extends AttackSetup {
  /** The size of something at each scale. */
  sized(smoke: number, full: number, torture?: number): number;
  /** The first account, or that of index `n`. */
  account(n?: number): AttackAccount;
}

export interface AttackSeeding extends AttackSide {
  readonly sql: Sql;
  /** Gives the first account devices with the IMEIs of the attack. */
  seedDevices(count: number, place: PlaceSql): Promise<void>;
}

/** Where the attacked pod is, and its database. */
export interface AttackedPlaces {
  readonly apiUrl: string;
  readonly ingestUrl: string;
  readonly databaseUrl: string;
}

/** Calls are counted by their answers, and made by the first account where nothing else is said. */
export interface Attacker extends AttackSide, AttackedPlaces {
  /** Fires when the time of the attack is over. Open calls are aborted then. */
  readonly stopped: AbortSignal;
  /** Returns the status; null when there was no answer. */
  call(call: AttackCall): Promise<number | null>;
  /** Counts something that is not an answer to a call. */
  count(what: string): void;
  /** With the key of an account, from its address. */
  headers(account?: number): Record<string, string>;
  get(path: string, manner?: 'unread'): Promise<number | null>;
  postJson(path: string, body: string): Promise<number | null>;
  /** To the ingest port, in the form of /positions. */
  sendPoints(points: readonly object[]): Promise<number | null>;
  /** The field `data` of an answer that the attack needs to go on; it is not counted. */
  fetchData<T>(path: string, body?: object): Promise<T>;
  /** Returns its id. */
  makeArea(area: object): Promise<number>;
  /** Calls `work` `times` times, at most `parallel` at once. Starts none after `stopped`. */
  inTurn(times: number, parallel: number, work: (n: number) => Promise<unknown>): Promise<void>;
}

export interface AttackCall {
  /** The whole address. */
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  /**
   * `unread`: does not read the body of the answer. `unfinished`: never ends the body of the request. Both last until
   * `stopped`.
   */
  readonly manner?: 'unread' | 'unfinished' | undefined;
}

function sideOf(setup: AttackSetup): AttackSide {
  return {
    ...setup,
    sized: (smoke, full, torture = full) => ({ smoke, full, torture })[setup.scale],
    account: (n = 0) => {
      const account = setup.accounts[n];
      if (account === undefined) throw new Error(`the attack has no account ${n}`);
      return account;
    },
  };
}

export function seedingOf(setup: AttackSetup, sql: Sql): AttackSeeding {
  const side = sideOf(setup);
  const { firstImei } = setup;
  return {
    ...side,
    sql,
    seedDevices: (count, place) => seedDevices(sql, side.account().worldId, { firstImei, count, place }),
  };
}

/** The headers of a call with an account's key, from its address. */
export function headersOf({ key, address }: AttackAccount): Record<string, string> {
  return { 'X-API-Key': key, 'X-Forwarded-For': address };
}

export const JSON_BODY = { 'Content-Type': 'application/json' };

export function attackerOf(
  setup: AttackSetup & AttackedPlaces,
  ports: Pick<Attacker, 'stopped' | 'call' | 'count'>,
): Attacker {
  const { apiUrl, ingestUrl } = setup;
  const { call, stopped } = ports;
  const side = sideOf(setup);
  const headers = (account?: number) => headersOf(side.account(account));
  const fetchData = async <T>(path: string, body?: object): Promise<T> => {
    const response = await fetch(apiUrl + path, {
      headers: { ...headers(), ...JSON_BODY },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    });
    const { data } = (await response.json()) as { data?: T };
    if (data === undefined) throw new Error(`${path} of the attack was answered with ${response.status}`);
    return data;
  };
  return {
    ...setup,
    ...side,
    ...ports,
    headers,
    fetchData,
    get: (path, manner) => call({ url: apiUrl + path, headers: headers(), manner }),
    postJson: (path, body) =>
      call({ url: apiUrl + path, method: 'POST', headers: { ...headers(), ...JSON_BODY }, body }),
    sendPoints: (points) => {
      const sent = { ...JSON_BODY, 'X-Ingest-Token': INGEST_TOKEN };
      const body = JSON.stringify(points);
      return call({ url: `${ingestUrl}/positions`, method: 'POST', headers: sent, body });
    },
    makeArea: async (area) => (await fetchData<{ id: number }>('/api/v3/areas', area)).id,
    inTurn: async (times, parallel, work) => {
      let next = 0;
      await atOnce(Math.min(times, parallel), async () => {
        while (next < times && !stopped.aborted) await work(next++);
      });
    },
  };
}

/** Starts `times` calls of `work` at once and waits for all. */
export async function atOnce(times: number, work: (n: number) => Promise<unknown>): Promise<void> {
  await Promise.all(Array.from({ length: times }, (_, n) => work(n)));
}

/** As it is deployed, with its limits on. It is killed: a clean stop would first finish what the attack left behind. */
export interface AttackedPod extends AttackedPlaces, AsyncDisposable {
  readonly worker: PodWorker;
}

const VARIABLES = {
  TRUST_PROXY: '127.0.0.0/8',
  RATE_LIMIT_KEY_MINUTE: '120',
  RATE_LIMIT_KEY_HOUR: '1000',
  RATE_LIMIT_IP_MINUTE: '120',
};

export async function startAttackedPod(databaseUrl: string): Promise<AttackedPod> {
  const worker = openPod();
  const end = async () => {
    worker.process.kill('SIGKILL');
    await worker[Symbol.asyncDispose]();
  };
  try {
    const start = { kind: 'start', databaseUrl, redisUrl: null, variables: VARIABLES } as const;
    const { url: apiUrl, ingestUrl } = await worker.ask(start);
    return { worker, apiUrl, ingestUrl, databaseUrl, [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}
