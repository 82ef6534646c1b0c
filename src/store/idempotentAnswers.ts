import type { Sql, Tx } from './sql.ts';

/** How long a repeated creation is answered again. */
const REPLAY_HOURS = 24;

/** The body of a 201, and the area that it made (which may be gone by now). */
export interface KeptAnswer {
  readonly areaId: number;
  readonly body: string;
}

/** What an Idempotency-Key stands for: nothing yet (now claimed), an answer to repeat, or another request. */
export type Claim =
  | { readonly kind: 'claimed' }
  | { readonly kind: 'answered'; readonly kept: KeptAnswer }
  | { readonly kind: 'mismatch' };

/**
 * Claims a key for the caller's transaction. While another transaction holds the claim this waits for its end; then
 * either its answer is repeated or, when it failed, the claim is free. A key with another body is a mismatch.
 */
export async function claimAnswer(tx: Tx, accountId: number, key: string, bodyHash: Buffer): Promise<Claim> {
  await tx`
    delete from idempotent_answer
    where account_id = ${accountId} and key = ${key}
      and created_at < clock_timestamp() - make_interval(hours => ${REPLAY_HOURS})`;
  const claimed = await tx`
    insert into idempotent_answer (account_id, key, body_hash) values (${accountId}, ${key}, ${bodyHash})
    on conflict do nothing returning 1`;
  if (claimed.length > 0) return { kind: 'claimed' };
  const [row] = await tx<{ body_hash: Buffer; area_id: number; answer: string }[]>`
    select body_hash, area_id, answer from idempotent_answer where account_id = ${accountId} and key = ${key}`;
  // Pruned between the two statements: its day was over.
  if (row === undefined) return claimAnswer(tx, accountId, key, bodyHash);
  if (!row.body_hash.equals(bodyHash)) return { kind: 'mismatch' };
  return { kind: 'answered', kept: { areaId: row.area_id, body: row.answer } };
}

/** Keeps the answer of a claimed key, with the area, in its transaction. */
export async function keepAnswer(tx: Tx, accountId: number, key: string, kept: KeptAnswer): Promise<void> {
  await tx`
    update idempotent_answer set area_id = ${kept.areaId}, answer = ${kept.body}
    where account_id = ${accountId} and key = ${key}`;
}

/**
 * True when an account keeps no more answers than its plan allows, the claim of this transaction included. Exact when
 * only one transaction at a time may look and keep: under the lock of the account's quota.
 */
export async function fitsKeptAnswers(tx: Tx, accountId: number): Promise<boolean> {
  const [row] = await tx<{ fits: boolean }[]>`
    select (
      select count(*) from (select from idempotent_answer where account_id = a.id limit p.max_idempotency_keys + 1) as kept
    ) <= p.max_idempotency_keys as fits
    from account a join plan p on p.name = a.plan where a.id = ${accountId}`;
  return row?.fits ?? false;
}

/** Removes answers that are too old to be repeated; returns how many. */
export async function pruneAnswers(sql: Sql): Promise<number> {
  const removed = await sql`
    delete from idempotent_answer where created_at < clock_timestamp() - make_interval(hours => ${REPLAY_HOURS})`;
  return removed.count;
}
