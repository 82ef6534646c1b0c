import { hash } from 'node:crypto';
import { type WritePorts, type WriteScope, writeWorlds } from '../changelog/writeWorlds.ts';
import { KeyedQueue } from '../lib/fairSemaphore.ts';
import type { FieldError } from '../lib/result.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { type AreaDraft, completeDraft } from './areaDraft.ts';
import { type AreaWriter, addArea, type SavedArea, type SaveOutcome } from './saveArea.ts';

/** A creation with an Idempotency-Key. */
interface Creation {
  readonly draft: AreaDraft;
  readonly key: string;
  /** The body as parsed, by which a repetition is known. */
  readonly body: unknown;
}

export type CreateOutcome =
  | SaveOutcome
  | { readonly kind: 'replayed'; readonly areaId: number; readonly body: string }
  | { readonly kind: 'key_mismatch' };

/**
 * Creates an area, at most once for each Idempotency-Key of an account within 24 hours: the key, the answer and the
 * area are one transaction, and a repetition waits for the first. Only creations are kept; after an error the key
 * is free. An account that keeps as many keys as its plan allows creates nothing under a new one.
 */
export class CreateOnce {
  /** Repetitions in this process wait here rather than each with a database connection. */
  readonly #queue = new KeyedQueue();

  /** `bodyOf` gives the body that a repetition is answered with. */
  async create(
    ports: WritePorts,
    writer: AreaWriter,
    creation: Creation,
    bodyOf: (saved: SavedArea) => string,
  ): Promise<CreateOutcome> {
    const { draft, key, body } = creation;
    const { accountId } = writer;
    const bodyHash = await ports.turns.run(accountId, bodyHashOf(body));
    const inTransaction = async (scope: WriteScope): Promise<CreateOutcome> => {
      const claim = await claimAnswer(scope.tx, accountId, key, bodyHash);
      if (claim.kind === 'mismatch') return { kind: 'key_mismatch' };
      if (claim.kind === 'answered') return replay(scope, writer, draft, claim.stored, bodyOf);
      const outcome = await addArea(scope, writer, draft);
      if (outcome.kind !== 'created') throw new Undone(outcome);
      // Exact, because the creation has locked the quota. Without the key a repetition would make another area.
      if (!(await fitsStoredAnswers(scope.tx, accountId))) {
        throw new Undone({ kind: 'invalid', errors: [TOO_MANY_KEYS] });
      }
      const { id: areaId, createdAtMs } = outcome.area;
      await storeAnswer(scope.tx, accountId, key, { areaId, createdAtMs, body: bodyOf(outcome) });
      return outcome;
    };
    return this.#queue.run(`${accountId} ${key}`, () =>
      writeWorlds(ports, inTransaction).catch((error: unknown) => {
        if (error instanceof Undone) return error.outcome;
        throw error;
      }),
    );
  }
}

/** Thrown to roll back a transaction whose outcome is not a success. */
class Undone extends Error {
  readonly outcome: SaveOutcome;

  constructor(outcome: SaveOutcome) {
    super('the creation is undone');
    this.outcome = outcome;
  }
}

/**
 * The answer of the first call. The body that is repeated is the same, so it makes the same area again, and with its id
 * and time the same answer.
 */
async function replay(
  { turns }: WriteScope,
  writer: AreaWriter,
  draft: AreaDraft,
  { areaId, createdAtMs, body }: StoredAnswer,
  bodyOf: (saved: SavedArea) => string,
): Promise<CreateOutcome> {
  if (body !== null) return { kind: 'replayed', areaId, body };
  const valid = await turns.once(writer.accountId, () => completeDraft(draft));
  if (!valid.ok) return { kind: 'invalid', errors: valid.error };
  const { definition, measures, warnings } = valid.value;
  const owner = { worldId: writer.worldIds[0] as number, accountId: writer.accountId };
  const area = { id: areaId, ...owner, definition, measures, createdAtMs, revision: 1 };
  return { kind: 'replayed', areaId, body: bodyOf({ kind: 'created', area, warnings }) };
}

function* bodyHashOf(body: unknown): Steps<Buffer> {
  return hash('sha256', yield* canonicalJson(body), 'buffer');
}

/** How long a repeated creation gets the same answer. */
const REPLAY_HOURS = 24;

/** Longer bodies are not kept: they are made again of the body that is repeated. */
const KEPT_BODY_CHARS = 4_096;

/** The answer to a creation. The area may be gone by now. */
interface StoredAnswer {
  readonly areaId: number;
  /** When it was created. */
  readonly createdAtMs: number;
  /** Null: too long to be kept. */
  readonly body: string | null;
}

/** The state of an Idempotency-Key: it was free and is claimed now, it has an answer, or another body was sent with it. */
type Claim =
  | { readonly kind: 'claimed' }
  | { readonly kind: 'answered'; readonly stored: StoredAnswer }
  | { readonly kind: 'mismatch' };

/**
 * Claims a key for the caller's transaction. Waits while another transaction holds the claim. If that one commits, its
 * answer is returned; if it fails, the claim is free. A key with another body is a mismatch.
 */
async function claimAnswer(tx: Tx, accountId: number, key: string, bodyHash: Buffer): Promise<Claim> {
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
async function storeAnswer(
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
async function fitsStoredAnswers(tx: Tx, accountId: number): Promise<boolean> {
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

/** A well-formed Idempotency-Key. */
export const IDEMPOTENCY_KEY = /^[A-Za-z0-9._:-]{1,200}$/;

/** What is answered to a key that was used with another body. */
export const KEY_MISMATCH: FieldError = {
  field: 'Idempotency-Key',
  code: 'MISMATCH',
  message: 'this Idempotency-Key was used with another body',
};

/** What is answered to a new key of an account that has as many of the last 24 hours as its plan allows. */
export const TOO_MANY_KEYS: FieldError = {
  field: 'Idempotency-Key',
  code: 'LIMIT_REACHED',
  message: 'the account has used as many Idempotency-Keys within 24 hours as its plan allows',
};

/** Values written in one step. */
const STEP_VALUES = 500;

/**
 * JSON text of a parsed value, with the members of every object in one order: values that parse equal give equal text.
 * Keys that are array indexes come first, then the others by their code units. Hashes of these texts are stored, so no
 * byte of them may ever change.
 */
export function* canonicalJson(value: unknown): Steps<string> {
  if (!isContainer(value)) return JSON.stringify(value);
  let text = '';
  let written = 0;
  function* write(container: object): Steps<void> {
    const keys = Array.isArray(container) ? null : sortedKeys(container);
    const members = keys === null ? (container as readonly unknown[]) : keys;
    text += keys === null ? '[' : '{';
    for (let n = 0; n < members.length; n++) {
      if (++written % STEP_VALUES === 0) yield;
      if (n > 0) text += ',';
      const key = keys?.[n];
      if (key !== undefined) text += `${JSON.stringify(key)}:`;
      const member = key === undefined ? members[n] : (container as Readonly<Record<string, unknown>>)[key];
      if (isContainer(member)) yield* write(member);
      else text += JSON.stringify(member);
    }
    text += keys === null ? ']' : '}';
  }
  yield* write(value);
  return text;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** An object lists the keys that are array indexes first, by number (ECMA-262, OrdinaryOwnPropertyKeys). */
function sortedKeys(object: object): readonly string[] {
  const sorted = Object.keys(object).sort();
  return Object.keys(Object.fromEntries(sorted.map((key) => [key, null])));
}
