import { createHash } from 'node:crypto';

/** Names the database whose transaction ids a cursor is made of, and how far that was. */
export interface ServerMark {
  /** Of the database, whatever its timeline. */
  readonly lineage: string;
  readonly timeline: number;
  /** A position in the write-ahead log behind everything that the cursor has seen, in bytes. */
  readonly walBytes: number;
}

const LINEAGE_CHARS = 10;

/** `history` is what server_history() says (sql/0012): system identifier, timeline and database. */
export function serverMark({ history, walBytes }: { history: string; walBytes?: number }): ServerMark {
  const [system = '', timeline = '', ...database] = history.split('/');
  const hash = createHash('sha256').update([system, ...database].join('/'));
  return {
    lineage: hash.digest('base64url').slice(0, LINEAGE_CHARS),
    timeline: Number(timeline) || 0,
    walBytes: walBytes ?? 0,
  };
}

/** Whether two marks are of one server, whatever it has written between them. */
export function isSameServer(a: ServerMark, b: ServerMark): boolean {
  return a.lineage === b.lineage && a.timeline === b.timeline;
}

/**
 * Whether a server holds everything that a cursor has seen: it is the same, or was promoted from it (or from one that was)
 * after it had followed it as far as that. `promotions`: how far each had come, by its timeline.
 */
export function holdsAll(
  now: ServerMark,
  mark: ServerMark,
  promotions: ReadonlyMap<number, number>,
): boolean {
  if (now.lineage !== mark.lineage || now.timeline < mark.timeline) return false;
  if (now.timeline === mark.timeline) return true;
  const later = [...promotions.keys()].filter(
    (timeline) => timeline > mark.timeline && timeline <= now.timeline,
  );
  const replayedBytes = promotions.get(Math.min(...later));
  return replayedBytes !== undefined && mark.walBytes <= replayedBytes;
}
