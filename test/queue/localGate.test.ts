import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LocalGate } from '../../src/queue/localGate.ts';
import { gateContract } from './gateContract.ts';
import { GateModel, SMALL_LIMITS, steps } from './gateModel.ts';
import { asks } from './pod.ts';

const SEED = 20_260_304;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

gateContract(async (_t, limits) => new LocalGate({ limits }));

test('answers any sequence of calls as the plain model does, over minutes and hours', () => {
  for (const maxLaterMs of [MINUTE_MS, HOUR_MS]) {
    fc.assert(
      fc.property(steps(maxLaterMs), (sequence) => {
        const gate = new LocalGate({ limits: SMALL_LIMITS });
        const model = new GateModel(SMALL_LIMITS, MINUTE_MS, HOUR_MS);
        let nowMs = 0;
        for (const { request, laterMs } of sequence) {
          nowMs += laterMs;
          assert.deepEqual(gate.admit(request, nowMs), model.admit(request, nowMs));
        }
      }),
      { seed: SEED, numRuns: 500 },
    );
  }
});

test('answers at once with shared verdicts, and is never stale', () => {
  const gate = new LocalGate({ limits: SMALL_LIMITS });
  const request = asks({ ip: '203.0.113.1', keyId: 1, worldIds: [1], versions: [1] });
  const first = gate.admit(request, 0);
  assert.deepEqual(first, { kind: 'pass' });
  assert.equal(gate.admit(request, 0), first);
});
