import type { WritePorts } from '../changelog/writeWorlds.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import type { DevicePatch } from './register/devicePatch.ts';
import { IMPORT_CHUNK, type ImportCounts, type ImportLine, importChunk } from './register/importChunk.ts';

/** One device of an import file, or why its line gives none. */
export interface ImportRow {
  readonly line: number;
  readonly patch: Result<DevicePatch, string>;
}

export interface ImportError {
  readonly reason: 'unknown_account' | 'unreadable' | 'too_many_rejected' | 'interrupted';
  /** Set when the file is unreadable. */
  readonly message?: string;
  /** What was stored before. */
  readonly counts: ImportCounts;
}

export interface ImportOptions {
  readonly interrupted: AbortSignal;
  /** Called now and then with the counts so far. */
  readonly onProgress: (counts: ImportCounts) => void;
}

/** A file with more wrong lines than this is not the file that the caller means. */
export const REJECTED_MAX = 100_000;

/**
 * Imports the rows of a file in chunks, each in a transaction of its own, so that nobody waits for all of them. A wrong
 * row is counted and costs no other. The error says what was stored before; importing the file again does no harm.
 * `rows` comes in batches; a batch that is an error ends the import.
 */
export async function importDevices(
  ports: WritePorts,
  email: string,
  rows: AsyncIterable<Result<readonly ImportRow[], string>>,
  { interrupted, onProgress }: ImportOptions,
): Promise<Result<ImportCounts, ImportError>> {
  const counts = { created: 0, updated: 0, rejected: [] as ImportCounts['rejected'][number][] };
  const stop = (reason: ImportError['reason'], message?: string) =>
    fail({ reason, counts, ...(message !== undefined && { message }) });
  const store = async (chunk: readonly ImportLine[]): Promise<boolean> => {
    const stored = await importChunk(ports, email, chunk);
    if (!stored.ok) return false;
    counts.created += stored.value.created;
    counts.updated += stored.value.updated;
    counts.rejected.push(...stored.value.rejected);
    return true;
  };
  let chunk: ImportLine[] = [];
  for await (const batch of rows) {
    if (!batch.ok) return stop('unreadable', batch.error);
    for (const { line, patch } of batch.value) {
      if (patch.ok) chunk.push({ line, patch: patch.value });
      else counts.rejected.push({ line, message: patch.error });
      if (chunk.length < IMPORT_CHUNK) continue;
      if (!(await store(chunk))) return stop('unknown_account');
      chunk = [];
      if (interrupted.aborted) return stop('interrupted');
    }
    if (counts.rejected.length > REJECTED_MAX) return stop('too_many_rejected');
    onProgress(counts);
  }
  // Also runs without lines, so that an unknown account is always reported.
  if (!(await store(chunk))) return stop('unknown_account');
  counts.rejected.sort((a, b) => a.line - b.line);
  return ok(counts);
}
