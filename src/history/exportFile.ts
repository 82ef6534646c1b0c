import { errorAnswer, NotBegun, type StreamedBody } from '../http/answer.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { MINUTE_MS } from '../lib/time.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { PointColumns } from './codec/pointColumns.ts';

/** The exports that one account may read from a pod at a time. */
export const EXPORTS_PER_ACCOUNT = 2;
/** The exports of all accounts. Each takes some megabytes while its reader is slow. */
const EXPORTS = 64;
/** How long a reader may take for what was sent: at most two megabytes. */
const STALL_LIMIT_MS = MINUTE_MS;

/** The exports that are being read, by account. */
export type RunningExports = FairSemaphore<number>;

export function newRunningExports(): RunningExports {
  const limits = { running: EXPORTS, runningPerKey: EXPORTS_PER_ACCOUNT, waiting: 0, waitingPerKey: 0 };
  return new FairSemaphore(limits);
}

export type Take = (piece: Buffer) => void;

/** Writes points as a file, page by page. Keeps no more than a page or a few of them. */
export interface HistoryEncoder {
  /** Hands over what the points of a device become, in pieces. Some of it may come with a later page. */
  encode(imei: string, page: PointColumns, take: Take): Steps<void>;
  /** Hands over the rest of the file. */
  finish(take: Take): Steps<void>;
}

/** What an export is made of. */
export interface ExportParts {
  /** Reads what comes first, so that what fails in it has a status of its own. */
  begin(): Promise<void>;
  /** Makes the next piece of the file; false when it was the last. */
  next(take: Take): Promise<boolean>;
  readonly trailers?: NonNullable<StreamedBody['trailers']>;
  /** To be called once after `begin` has succeeded, whether all was made or not. */
  end?(): void;
}

/** The file of an export, as one of those that are being read. `what`: what the caller has read too many of. */
export function exportBody(
  running: RunningExports,
  accountId: number,
  parts: ExportParts,
  what: 'exports' | 'summaries' = 'exports',
): StreamedBody {
  return {
    bytes: null,
    stallLimitMs: STALL_LIMIT_MS,
    open: async () => {
      if (running.countOf(accountId) >= EXPORTS_PER_ACCOUNT)
        throw new NotBegun(errorAnswer('TOO_MANY_REQUESTS', tooMany(what)));
      await running.acquire(accountId);
      try {
        await parts.begin();
      } catch (error) {
        running.release(accountId);
        throw error;
      }
    },
    next: (take) => parts.next(take),
    ...(parts.trailers === undefined ? {} : { trailers: parts.trailers }),
    close: () => {
      parts.end?.();
      running.release(accountId);
    },
  };
}

function tooMany(what: string): string {
  return `${EXPORTS_PER_ACCOUNT} ${what} of this account are being read already; read one of them to its end first`;
}
