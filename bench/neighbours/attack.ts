import type { Sql } from '../../src/postgres/sql.ts';

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
  readonly token: string;
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

/** Creates an area of the first account; its id. */
export async function makeArea(attacker: Attacker, area: object): Promise<number> {
  const made = await fetch(`${attacker.apiUrl}/api/v3/areas`, {
    method: 'POST',
    headers: { ...headersOf(accountOf(attacker)), 'Content-Type': 'application/json' },
    body: JSON.stringify(area),
  });
  const { data } = (await made.json()) as { data?: { id: number } };
  if (data === undefined) throw new Error(`the area of the attack was answered with ${made.status}`);
  return data.id;
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
