import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { bodyTexts } from '../../src/console/page/stream.ts';
import { anyCharacter } from '../support/http/anyCharacter.ts';

describe('the text of a body', () => {
  for (const type of ['bytes', undefined] as const)
    test(`is the same wherever ${type === 'bytes' ? 'a stream of bytes' : 'another stream'} is cut`, async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.string({ unit: anyCharacter, maxLength: 200 }),
          fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
          fc.boolean(),
          async (text, sizes, isLong) => {
            const whole = isLong ? text.repeat(2_000) : text;
            const bytes = new TextEncoder().encode(whole);
            const scale = isLong ? 5_000 : 1;
            assert.equal(await joined(streamOf(bytes, sizes, scale, type)), whole);
          },
        ),
      );
    });
});

type Bytes = Uint8Array<ArrayBuffer>;

function streamOf(bytes: Bytes, sizes: readonly number[], scale: number, type?: 'bytes') {
  let at = 0;
  let turn = 0;
  const next = (): Bytes => {
    const size = (sizes[turn++ % sizes.length] as number) * scale;
    at += size;
    return bytes.slice(at - size, at);
  };
  if (type === undefined) {
    return new ReadableStream<Bytes>({
      pull: (controller) => (at < bytes.length ? controller.enqueue(next()) : controller.close()),
    });
  }
  return new ReadableStream({
    type,
    pull: (controller) => {
      if (at < bytes.length) return controller.enqueue(next());
      controller.close();
      controller.byobRequest?.respond(0); // gives the memory of the last read back
    },
  }) as ReadableStream<Bytes>;
}

async function joined(body: ReadableStream<Bytes>): Promise<string> {
  let text = '';
  for await (const piece of bodyTexts(body)) text += piece;
  return text;
}
