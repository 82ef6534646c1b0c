import { eventView } from '../events/eventView.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { formatIso } from '../lib/isoTime.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { ChangedJson } from './changedJson.ts';
import type { RecordedEvent } from './eventFeed.sql.ts';
import type { FeedAnswer, FeedFormat } from './feedPage.ts';
import { CURSOR_MESSAGE, TOO_MANY_WAITS, TOO_MUCH_UNREAD } from './feedParameters.ts';

/** Some hundred microseconds of work. */
const ITEMS_PER_STEP = 64;
const OPENING = '{"data":[';
const COMMA = 0x2c;

/** Pages of the feeds as `{ data, meta }`. */
export function feedFormat(changedJson: ChangedJson): FeedFormat {
  return {
    changes: (items, end, nowMs) => pageOf(items, (item) => changedJson.json(item, nowMs), end),
    events: (events, end) => pageOf(events, (event) => JSON.stringify(recordedEventView(event)), end),
  };
}

/** What a call of a feed is answered with. */
export function feedAnswer(page: FeedAnswer): Answer {
  if (typeof page === 'object') {
    const { bytes: body, handover } = page;
    return handover === null ? { status: 200, body } : { status: 200, body, handover };
  }
  switch (page) {
    case 'malformed':
      return errorAnswer('BAD_REQUEST', CURSOR_MESSAGE);
    case 'expired':
      return errorAnswer('CURSOR_EXPIRED');
    case 'unread':
      return errorAnswer('TOO_MANY_REQUESTS', TOO_MUCH_UNREAD);
    case 'crowded':
      return errorAnswer('TOO_MANY_REQUESTS', TOO_MANY_WAITS);
  }
}

/** The bytes are written straight from the texts, which are not joined before. */
function* pageOf<T>(
  items: readonly T[],
  textOf: (item: T) => string,
  { cursor, hasMore }: { readonly cursor: string; readonly hasMore: boolean },
): Steps<Buffer> {
  const closing = `],"meta":{"cursor":"${cursor}","has_more":${hasMore}}}`;
  const texts: string[] = [];
  let length = OPENING.length + closing.length;
  for (const item of items) {
    if (texts.length % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    const text = textOf(item);
    length += Buffer.byteLength(text) + 1;
    texts.push(text);
  }
  const bytes = Buffer.allocUnsafe(length);
  let at = bytes.write(OPENING);
  for (const [n, text] of texts.entries()) {
    if (n % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    if (n > 0) bytes[at++] = COMMA;
    at += bytes.write(text, at);
  }
  return bytes.subarray(0, at + bytes.write(closing, at));
}

/** As the feed of events shows it. */
export function recordedEventView(event: RecordedEvent) {
  return { ...eventView(event, 'v3'), recorded_at: formatIso(event.recordedAtMs) };
}
