import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { TextArena } from '../../src/lib/rows.ts';
import { anyCharacter } from '../support/http/anyCharacter.ts';

describe('an arena of texts', () => {
  test('has every text that was put and not freed, whatever its characters', () => {
    const text = fc.oneof(
      { weight: 20, arbitrary: fc.string({ unit: anyCharacter, maxLength: 30 }) },
      { weight: 20, arbitrary: fc.string({ maxLength: 30 }) },
      { weight: 4, arbitrary: fc.constant('x'.repeat(70_000)) },
      { weight: 1, arbitrary: fc.constant('ä'.repeat(1_200_000)) },
    );
    const step = fc.tuple(fc.nat(20), fc.option(text));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const arena = new TextArena();
        const model = new Map<number, { ref: number; text: string }>();
        for (const [slot, text] of steps) {
          const present = model.get(slot);
          if (present !== undefined) arena.free(present.ref);
          model.delete(slot);
          if (text !== null)
            model.set(slot, { ref: arena.put(text.toWellFormed()), text: text.toWellFormed() });
        }
        const refs = [...model.values()].map(({ ref }) => ref);
        assert.ok(new Set(refs).size === refs.length && refs.every((ref) => ref > 0));
        for (const { ref, text } of model.values()) assert.ok(arena.text(ref) === text);
      }),
      { seed: 3, numRuns: 30 },
    );
  });

  test('takes room again that was freed, and gives back that of a very long text', () => {
    const arena = new TextArena();
    const fill = () => Array.from({ length: 30_000 }, (_, n) => arena.put(`text number ${n}`));
    const refs = fill();
    const before = arena.bytes;
    const long = arena.put('x'.repeat(3_000_000));
    assert.ok(arena.bytes >= before + 3_000_000);
    arena.free(long);
    for (const ref of refs) arena.free(ref);
    fill();
    assert.equal(arena.bytes, before);
  });
});
