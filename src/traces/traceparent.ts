/** The span of the caller that a span belongs to. */
export interface RemoteParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

const NAME = 'traceparent';

/** The parent that a request names in Node's flat list of headers; null when it names none, or several. */
export function parentOf(rawHeaders: readonly string[]): RemoteParent | null {
  let found: string | null = null;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    // Lengths first: hardly any other header is lower-cased for this.
    if (name.length !== NAME.length || name.toLowerCase() !== NAME) continue;
    if (found !== null) return null;
    found = rawHeaders[at + 1] as string;
  }
  return found === null ? null : parseTraceparent(found);
}

/** A version after 00 may say more behind the flags (W3C Trace Context, section 3.2). */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

export function parseTraceparent(text: string): RemoteParent | null {
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(text) ?? [];
  if (version === undefined || (version === '00' && more !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
