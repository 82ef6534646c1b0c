import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EnginePlayer } from './traces/enginePlayer.ts';
import { expectedEvents } from './traces/expectedEvents.ts';
import { RULES } from './traces/rules.ts';
import { TRACES } from './traces/traces.ts';

const START_MS = Date.UTC(2026, 2, 14, 12);

describe('the engine', () => {
  for (const trace of TRACES) {
    test(trace.name, () => {
      assert.deepEqual(new EnginePlayer(trace, START_MS).play(), expectedEvents(trace, START_MS), trace.rule);
    });
  }
});

describe('the stories', () => {
  test('are at least forty, each with a name of its own', () => {
    assert.ok(TRACES.length >= 40);
    assert.equal(new Set(TRACES.map((trace) => trace.name)).size, TRACES.length);
  });

  test('leave no rule without a proof', () => {
    const proven = new Set(TRACES.map((trace) => trace.rule));
    assert.deepEqual(
      Object.values(RULES).filter((rule) => !proven.has(rule)),
      [],
    );
  });
});
