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
  /** The number of accounts that take part, each with a key. 0 when it needs no credentials. */
  readonly accounts: number;
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

/** What an attack gets when it is seeded and when it runs. */
export interface AttackSetup {
  readonly scale: Scale;
  readonly accounts: readonly AttackAccount[];
  /** The attacker's webhook receiver: `https://127.0.0.1:<port>`. It never answers paths below /hang. */
  readonly receiverUrl: string;
  /** The first of ten million IMEIs that belong to this attack. */
  readonly firstImei: number;
}

export interface AttackSeeding extends AttackSetup {
  readonly sql: Sql;
}

export interface Attacker extends AttackSetup {
  readonly apiUrl: string;
  readonly ingestUrl: string;
  readonly databaseUrl: string;
  /** Fires when the time of the attack is over. Open calls are aborted then. */
  readonly stopped: AbortSignal;
  /** Sends a call and counts its answer; null when there was none. */
  call(call: AttackCall): Promise<number | null>;
  /** Counts something that is not an answer to a call. */
  count(what: string): void;
}

export interface AttackCall {
  /** The whole address. */
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  /** `unread`: does not read the body of the answer. `unfinished`: never ends the body of the request. Both last until `stopped`. */
  readonly manner?: 'unread' | 'unfinished';
}

/** The size of something at each scale. */
export function sized({ scale }: AttackSetup, smoke: number, full: number, torture: number = full): number {
  return { smoke, full, torture }[scale];
}

/** The first account's, or that of index `n`. */
export function accountOf({ accounts }: AttackSetup, n = 0): AttackAccount {
  const account = accounts[n];
  if (account === undefined) throw new Error(`the attack has no account ${n}`);
  return account;
}

/** The headers of a call with an account's key, from its address. */
export function headersOf({ key, address }: AttackAccount): Record<string, string> {
  return { 'X-API-Key': key, 'X-Forwarded-For': address };
}

export const JSON_BODY = { 'Content-Type': 'application/json' };

/** A GET of the first account. */
export function get(attacker: Attacker, path: string, manner?: 'unread'): Promise<number | null> {
  const headers = headersOf(accountOf(attacker));
  return attacker.call({ url: attacker.apiUrl + path, headers, ...(manner !== undefined && { manner }) });
}

/** A POST of JSON of the first account. */
export function postJson(attacker: Attacker, path: string, body: string): Promise<number | null> {
  const headers = { ...headersOf(accountOf(attacker)), ...JSON_BODY };
  return attacker.call({ url: attacker.apiUrl + path, method: 'POST', headers, body });
}

/** Points to the ingest port, in the form of /positions. */
export function sendPoints(attacker: Attacker, points: readonly object[]): Promise<number | null> {
  return attacker.call({
    url: `${attacker.ingestUrl}/positions`,
    method: 'POST',
    headers: { ...JSON_BODY, 'X-Ingest-Token': INGEST_TOKEN },
    body: JSON.stringify(points),
  });
}

/** The field `data` of an answer that the attack needs to go on; it is not counted. */
export async function fetchData<T>(attacker: Attacker, path: string, body?: object): Promise<T> {
  const response = await fetch(attacker.apiUrl + path, {
    headers: { ...headersOf(accountOf(attacker)), ...JSON_BODY },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });
  const { data } = (await response.json()) as { data?: T };
  if (data === undefined) throw new Error(`${path} of the attack was answered with ${response.status}`);
  return data;
}

/** Creates an area of the first account; its id. */
export async function makeArea(attacker: Attacker, area: object): Promise<number> {
  return (await fetchData<{ id: number }>(attacker, '/api/v3/areas', area)).id;
}

/** Gives the first account devices with the IMEIs of the attack. */
export function seedOwnDevices(seeding: AttackSeeding, count: number, place: PlaceSql): Promise<void> {
  const { sql, firstImei } = seeding;
  return seedDevices(sql, accountOf(seeding).worldId, { firstImei, count, place });
}

/** Starts `times` calls of `work` at once and waits for all. */
export async function atOnce(times: number, work: (n: number) => Promise<unknown>): Promise<void> {
  await Promise.all(Array.from({ length: times }, (_, n) => work(n)));
}

/** Calls `work` `times` times, at most `parallel` at once. Starts none after `stopped`. */
export async function inTurn(
  { stopped }: Attacker,
  times: number,
  parallel: number,
  work: (n: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  await atOnce(Math.min(times, parallel), async () => {
    while (next < times && !stopped.aborted) await work(next++);
  });
}

/**
 * A pod as it is deployed: behind a proxy, with its limits on. It is killed in the end, since a clean stop would first
 * finish what the attack left behind.
 */
export interface AttackedPod extends AsyncDisposable {
  readonly worker: PodWorker;
  readonly apiUrl: string;
  readonly ingestUrl: string;
  readonly databaseUrl: string;
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
