import type { Sql, Tx } from '../postgres/sql.ts';

/** How long a repeated creation gets the same answer. */
const REPLAY_HOURS = 24;

/** Longer bodies are not kept: they are made again of the body that is repeated. */
const KEPT_BODY_CHARS = 4_096;

/** The answer to a creation. The area may be gone by now. */
export interface StoredAnswer {
  readonly areaId: number;
  /** When it was created. */
  readonly createdAtMs: number;
  /** Null: too long to be kept. */
  readonly body: string | null;
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
  const [row] = await tx<{ hash: Buffer; areaId: number; body: string | null; createdAt: Date }[]>`
    select body_hash as hash, area_id as "areaId", answer as body, area_created_at as "createdAt"
    from idempotent_answer where account_id = ${accountId} and key = ${key}`;
  // It was pruned between the two statements.
  if (row === undefined) return claimAnswer(tx, accountId, key, bodyHash);
  const { hash, areaId, body, createdAt } = row;
  if (!hash.equals(bodyHash)) return { kind: 'mismatch' };
  return { kind: 'answered', stored: { areaId, createdAtMs: createdAt.getTime(), body } };
}

/** Stores the answer of a claimed key and its area, in the same transaction; of a long body only what it is made of. */
export async function storeAnswer(
  tx: Tx,
  accountId: number,
  key: string,
  { areaId, createdAtMs, body }: { areaId: number; createdAtMs: number; body: string },
): Promise<void> {
  const kept = body.length > KEPT_BODY_CHARS ? null : body;
  await tx`
    update idempotent_answer
    set area_id = ${areaId}, area_created_at = ${new Date(createdAtMs)}, answer = ${kept}
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
