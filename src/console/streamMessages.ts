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

  /** The messages that are complete with this piece; blocks without data are left out. */
  take(piece: string): StreamMessage[] {
    const blocks = (this.#rest + piece).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => {
      const fields = new Map(block.split('\n').map(fieldOf));
      const data = fields.get('data');
      return data === undefined
        ? []
        : [{ event: fields.get('event') ?? 'message', id: fields.get('id') ?? '', data }];
    });
  }
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  if (colon === -1) return [line, ''];
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
}
