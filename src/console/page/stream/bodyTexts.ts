/** Longer texts are kept among those that live long, and only a whole collection of garbage removes them. */
const PIECE_BYTES = 65_536;

/** The text of a body as it comes, in pieces. Rejects when the line is cut. */
export async function* bodyTexts(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  const read = readerOf(body);
  for (let bytes = await read(); bytes !== null; bytes = await read()) {
    yield decoder.decode(bytes, { stream: true });
  }
}

/** Reads the next bytes, which are gone with the next read; null at the end. */
function readerOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): () => Promise<Uint8Array | null> {
  let reader: ReadableStreamBYOBReader;
  try {
    reader = body.getReader({ mode: 'byob' });
  } catch {
    // A browser whose bodies are not byte streams: it allocates memory for each piece.
    const plain = body.getReader();
    return async () => (await plain.read()).value ?? null;
  }
  let memory = new ArrayBuffer(PIECE_BYTES);
  return async () => {
    const { value, done } = await reader.read(new Uint8Array(memory));
    if (done) return null;
    memory = value.buffer;
    return value;
  };
}
