import { Overloaded } from '../../lib/fairSemaphore.ts';
import type { Sql } from '../../postgres/sql.ts';
import type { PointColumns } from '../codec/pointColumns.ts';
import type { TimeWindow } from '../packedPoints.sql.ts';
import { DeviceGone, pointPages } from '../points.sql.ts';
import type { HistoryReader } from '../summary/summarizeHistory.ts';

/** Of one account on a pod, at a time. */
export const EXPORTS_PER_ACCOUNT = 2;
/** Of all accounts. Each takes one or two megabytes while its reader is slow. */
const EXPORTS = 64;

/** An export that has begun. */
export interface OpenExport {
  /** The next page of points, oldest first; null after the last. Throws DeviceGone. */
  next(): Promise<PointColumns | null>;
  /** To be called once. */
  close(): void;
}

/** The exports that are read from this pod. They hold no connection between two pages, however slow their readers are. */
export class HistoryExports {
  readonly #reads: (accountId: number) => Sql;
  readonly #openOf = new Map<number, number>();
  #open = 0;

  constructor({ reads }: { readonly reads: (accountId: number) => Sql }) {
    this.#reads = reads;
  }

  /** Begins an export; its first page is read. Rejects with Overloaded, and with what Postgres answers. */
  async open(
    reader: HistoryReader,
    deviceId: number,
    window: TimeWindow,
  ): Promise<OpenExport | 'too_many' | 'gone'> {
    const { accountId, worldIds } = reader;
    if ((this.#openOf.get(accountId) ?? 0) >= EXPORTS_PER_ACCOUNT) return 'too_many';
    if (this.#open >= EXPORTS) throw new Overloaded('too many exports are open');
    this.#add(accountId, 1);
    const pages = pointPages(this.#reads(accountId), worldIds, deviceId, window);
    try {
      let first: PointColumns | null | undefined = await nextOf(pages);
      const next = async (): Promise<PointColumns | null> => {
        if (first === undefined) return nextOf(pages);
        const page = first;
        first = undefined;
        return page;
      };
      return { next, close: () => this.#add(accountId, -1) };
    } catch (error) {
      this.#add(accountId, -1);
      if (error instanceof DeviceGone) return 'gone';
      throw error;
    }
  }

  #add(accountId: number, by: 1 | -1): void {
    const open = (this.#openOf.get(accountId) ?? 0) + by;
    if (open === 0) this.#openOf.delete(accountId);
    else this.#openOf.set(accountId, open);
    this.#open += by;
  }
}

async function nextOf(pages: AsyncGenerator<PointColumns, void, undefined>): Promise<PointColumns | null> {
  const { value, done } = await pages.next();
  return done === true ? null : value;
}
