import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { answerBeginning, newSecret } from '../../src/webhooks/delivery.ts';

const MAX_BYTES = 1_024;
const of = (...chunks: (string | Uint8Array)[]): string =>
  answerBeginning(chunks.map((chunk) => Buffer.from(chunk)));

describe('what is kept of an answer', () => {
  const rows: [string, (string | Uint8Array)[], string][] = [
    ['nothing', [], ''],
    ['text', ['{"error":"busy"}\r\n\ttry later'], '{"error":"busy"}\r\n\ttry later'],
    ['a character that came in two pieces', [Buffer.from([0xf0, 0x9f]), Buffer.from([0x9a, 0x9a])], '🚚'],
    ['what is no UTF-8', [Buffer.from([0x61, 0xff, 0x62, 0xc3])], 'a\ufffdb\ufffd'],
    ['control characters', ['a\0\x07\x1b[31m\x7f\x85'], 'a\ufffd\ufffd\ufffd[31m\ufffd\ufffd'],
    ['as much as is kept', ['x'.repeat(MAX_BYTES)], 'x'.repeat(MAX_BYTES)],
    ['more', ['x'.repeat(1_000), 'y'.repeat(25)], `${'x'.repeat(1_000)}${'y'.repeat(21)}…`],
    ['a character on the edge', [`${'x'.repeat(1_020)}🚚🚚`], `${'x'.repeat(1_020)}…`],
    ['a secret', ['secret=whsec_AbC+/19==, said who'], 'secret=whsec_…, said who'],
    ['a secret in JSON and in a URL', ['"whsec_a\\/b=" whsec_a%2Fb%3D'], '"whsec_…" whsec_…'],
    ['a secret on the edge', [`${'x'.repeat(1_010)}whsec_0123456789`], `${'x'.repeat(1_010)}whsec_……`],
  ];
  for (const [what, chunks, kept] of rows) {
    test(`of ${what} fits`, () => assert.equal(of(...chunks), kept));
  }

  test('is well-formed text of at most 1 024 bytes and shows no secret, whatever comes in whatever pieces', () => {
    const secret = newSecret();
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 700 }),
      fc.string({ unit: 'grapheme', maxLength: 300 }).map((text) => Buffer.from(text)),
      fc.constant(Buffer.from(secret)),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), fc.integer({ min: 0, max: 2_000 }), (pieces, cut) => {
        const whole = Buffer.concat(pieces);
        const kept = answerBeginning(pieces);
        assert.ok(Buffer.byteLength(kept) <= MAX_BYTES && kept.isWellFormed());
        assert.ok(!/whsec_[^…]/.test(kept) && !kept.includes(secret.slice(6)));
        assert.equal(answerBeginning([whole.subarray(0, cut), whole.subarray(cut)]), kept);
      }),
    );
  });
});
