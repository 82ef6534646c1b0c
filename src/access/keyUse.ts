import { MINUTE_MS } from '../lib/time.ts';
import type { Sql } from '../postgres/sql.ts';
import { errorFields } from '../postgres/sqlErrors.ts';
import { updateLastUsed } from './keys.sql.ts';

/** The times are for people who look for keys that nobody uses: a minute is exact enough. */
const NOTED_EVERY_MS = MINUTE_MS;
const FLUSH_AFTER_MS = 2_000;
/** Keys remembered as noted; with more in use they are noted more often than once a minute. */
const MAX_NOTED = 50_000;

interface KeyUsePorts {
  readonly sql: Sql;
  readonly log: { warn(fields: object, message: string): void };
}

/**
 * Records when keys were last used: at most once a minute for each, many at a time, and after the answers. When a write
 * fails, its uses are dropped, and the next use of those keys is recorded again.
 */
export class KeyUse {
  readonly #ports: KeyUsePorts;
  readonly #notedAtMs = new Map<number, number>();
  #pending = new Set<number>();
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> | null = null;

  constructor(ports: KeyUsePorts) {
    this.#ports = ports;
  }

  /** On every authorized call of a key: one look into a map in the usual case. */
  note(keyId: number, nowMs: number): void {
    const notedAtMs = this.#notedAtMs.get(keyId);
    // The absolute difference also covers a clock that was set back.
    if (notedAtMs !== undefined && Math.abs(nowMs - notedAtMs) < NOTED_EVERY_MS) return;
    if (this.#notedAtMs.size >= MAX_NOTED) this.#notedAtMs.clear();
    this.#notedAtMs.set(keyId, nowMs);
    this.#pending.add(keyId);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS);
  }

  /** Writes what was noted. Never rejects. */
  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    // One at a time: a Postgres that says nothing must not take one connection after the other.
    await this.#writing;
    if (this.#pending.size === 0) return;
    const ids = [...this.#pending];
    this.#pending = new Set();
    this.#writing = this.#write(ids);
    await this.#writing;
    this.#writing = null;
  }

  async #write(ids: readonly number[]): Promise<void> {
    try {
      await updateLastUsed(this.#ports.sql, ids);
    } catch (error) {
      for (const id of ids) this.#notedAtMs.delete(id);
      this.#ports.log.warn(errorFields(error), 'the last use of keys was not written down');
    }
  }
}
