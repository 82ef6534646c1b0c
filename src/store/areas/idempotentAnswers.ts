import type { Sql, Tx } from '../sql/sql.ts';

/** How long a repeated creation gets the same answer. */
const REPLAY_HOURS = 24;

/** The body of a 201, and the area that was created, which may be gone by now. */
export interface StoredAnswer {
  readonly areaId: number;
  readonly body: string;
}

/** The state of an Idempotency-Key: it was free and is claimed now, it has an answer, or another body was sent with it. */
export type Claim =
  | { readonly kind: 'claimed' }
  | { readonly kind: 'answered'; readonly stored: StoredAnswer }
  | { readonly kind: 'mismatch' };

/**
 * Claims a key for the caller's transaction. Waits while another transaction holds the claim. If that one commits, its
 * answer is returned; if it fails, the claim is free. A key with another body is a mismatch.
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
  // It was pruned between the two statements.
  if (row === undefined) return claimAnswer(tx, accountId, key, bodyHash);
  if (!row.body_hash.equals(bodyHash)) return { kind: 'mismatch' };
  return { kind: 'answered', stored: { areaId: row.area_id, body: row.answer } };
}

/** Stores the answer of a claimed key and its area, in the same transaction. */
export async function storeAnswer(
  tx: Tx,
  accountId: number,
  key: string,
  stored: StoredAnswer,
): Promise<void> {
  await tx`
    update idempotent_answer set area_id = ${stored.areaId}, answer = ${stored.body}
    where account_id = ${accountId} and key = ${key}`;
}

/**
 * True when an account has no more answers than its plan allows, including the claim of this transaction. Exact only
 * under the lock of the account's quota, where one transaction at a time counts and stores.
 */
export async function fitsStoredAnswers(tx: Tx, accountId: number): Promise<boolean> {
  const [row] = await tx<{ fits: boolean }[]>`
    select (
      select count(*) from (select from idempotent_answer where account_id = a.id limit p.max_idempotency_keys + 1) as stored
    ) <= p.max_idempotency_keys as fits
    from account a join plan p on p.name = a.plan where a.id = ${accountId}`;
  return row?.fits ?? false;
}

/** Deletes answers that are too old to be repeated. Returns how many. */
export async function pruneAnswers(sql: Sql): Promise<number> {
  const removed = await sql`
    delete from idempotent_answer where created_at < clock_timestamp() - make_interval(hours => ${REPLAY_HOURS})`;
  return removed.count;
}
