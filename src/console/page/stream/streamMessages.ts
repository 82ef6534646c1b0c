/** One message of the stream. */
export interface StreamMessage {
  readonly event: string;
  /** A cursor: the stream can be resumed behind this message. */
  readonly id: string;
  readonly data: string;
}

/** Cuts a stream of server-sent events into messages (WHATWG HTML 9.2.6), however it arrives in pieces. */
export class StreamMessages {
  #rest = '';

  /**
   * The messages that are complete with this piece, each cut out when it is asked for. Blocks without data are left out.
   * The next piece may come when all of them were taken.
   */
  *take(piece: string): Generator<StreamMessage, void> {
    const text = this.#rest + piece;
    let at = 0;
    for (;;) {
      const end = text.indexOf('\n\n', at);
      if (end === -1) break;
      const message = messageOf(text, at, end);
      at = end + 2;
      if (message !== null) yield message;
    }
    this.#rest = text.slice(at);
  }
}

/** The message whose lines are there in the text; null without data. */
function messageOf(text: string, from: number, to: number): StreamMessage | null {
  let event = 'message';
  let id = '';
  let data: string | null = null;
  for (let at = from; at < to; ) {
    const newline = text.indexOf('\n', at);
    const end = newline === -1 || newline > to ? to : newline;
    if (text.startsWith('data:', at)) data = fieldValue(text, at + 5, end);
    else if (text.startsWith('event:', at)) event = fieldValue(text, at + 6, end);
    else if (text.startsWith('id:', at)) id = fieldValue(text, at + 3, end);
    at = end + 1;
  }
  return data === null ? null : { event, id, data };
}

function fieldValue(text: string, from: number, to: number): string {
  return text.slice(text[from] === ' ' ? from + 1 : from, to);
}
