import type { Sql } from '../../src/store/sql.ts';

/**
 * What one caller, inside its limits, may do to everybody else. The table of them is attacks.ts. Each has accounts,
 * devices and addresses of its own, so any of them can run beside any other.
 */
export interface Attack {
  /** Its name in the record. */
  readonly name: string;
  /** How many accounts take part, each with a key; none when it needs no credentials. */
  readonly accounts: number;
  /** Puts into the database what the accounts own, before any pod has started. */
  readonly seed?: (seeding: Seeding) => Promise<void>;
  /** Runs in a process of its own and ends when the last answer is there or `scene.stopped` says so. */
  readonly run: (scene: Scene) => Promise<void>;
  /** Goes on until it is stopped. */
  readonly lasts?: true;
  /** What the polling victim asks beside its usual calls. */
  readonly asks?: 'login' | 'small import';
}

/** How large: to see that it works; as a hostile caller would; as a hostile caller with more time would. */
export type Scale = 'smoke' | 'full' | 'torture';

export interface AttackAccount {
  readonly email: string;
  readonly accountId: number;
  readonly worldId: number;
  readonly key: string;
  /** Addresses in 10/8 that only this account calls from. */
  readonly address: string;
}

/** What an attack is seeded and run with. */
export interface Stage {
  readonly scale: Scale;
  readonly accounts: readonly AttackAccount[];
  /** Where the receiver of the attacker listens: `https://127.0.0.1:<port>`. Paths below /hang are never answered. */
  readonly receiverUrl: string;
  /** The first of ten million IMEIs that are this attack's. */
  readonly firstImei: number;
}

export interface Seeding extends Stage {
  readonly sql: Sql;
}

export interface Scene extends Stage {
  readonly apiUrl: string;
  readonly ingestUrl: string;
  readonly token: string;
  readonly databaseUrl: string;
  /** Fires when the time of the attack is over: open calls are cut then. */
  readonly stopped: AbortSignal;
  /** Sends a call and counts its answer; null when there was none. */
  call(call: AttackCall): Promise<number | null>;
  /** Counts what is no answer to a call. */
  count(what: string): void;
}

export interface AttackCall {
  /** The whole address. */
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  /** `unread`: takes nothing of the answer's body. `unfinished`: never ends the request's body. Both last until `stopped`. */
  readonly manner?: 'unread' | 'unfinished';
}

/** The size of something at each scale; under torture as in full where no other is given. */
export function sized({ scale }: Stage, smoke: number, full: number, torture: number = full): number {
  return { smoke, full, torture }[scale];
}

/** The first account's, or that of index `n`. */
export function accountOf({ accounts }: Stage, n = 0): AttackAccount {
  const account = accounts[n];
  if (account === undefined) throw new Error(`the attack has no account ${n}`);
  return account;
}

/** The headers of a call with an account's key, from its address. */
export function headersOf({ key, address }: AttackAccount): Record<string, string> {
  return { 'X-API-Key': key, 'X-Forwarded-For': address };
}

/** Does it `times` times, all at once, and waits for all. */
export async function atOnce(times: number, work: (n: number) => Promise<unknown>): Promise<void> {
  await Promise.all(Array.from({ length: times }, (_, n) => work(n)));
}

/** Does it `times` times, at most `parallel` at once; no more after `stopped`. */
export async function inTurn(
  { stopped }: Scene,
  times: number,
  parallel: number,
  work: (n: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  await atOnce(Math.min(times, parallel), async () => {
    while (next < times && !stopped.aborted) await work(next++);
  });
}
