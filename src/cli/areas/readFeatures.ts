import { Readable } from 'node:stream';
import { parser } from 'stream-json';
import { pick } from 'stream-json/filters/pick.js';
import { streamArray } from 'stream-json/streamers/stream-array.js';

/** The text of a file is no JSON, or ends too soon. */
export class UnreadableFile extends Error {
  override name = 'UnreadableFile';
}

/**
 * The features of a GeoJSON FeatureCollection, some at a time: a file may be larger than memory. Throws UnreadableFile.
 * A document without `features` has none.
 */
export async function* readFeatures(
  source: AsyncIterable<Uint8Array>,
  atATime: number,
): AsyncGenerator<readonly unknown[], void> {
  const tokens = Readable.from(source, { objectMode: false }).compose(parser.asStream());
  const features = tokens.compose(pick.asStream({ filter: 'features' })).compose(streamArray.asStream());
  let some: unknown[] = [];
  try {
    for await (const { value } of features) {
      some.push(value);
      if (some.length < atATime) continue;
      yield some;
      some = [];
    }
  } catch (error) {
    throw new UnreadableFile(error instanceof Error ? error.message : String(error), { cause: error });
  }
  if (some.length > 0) yield some;
}
