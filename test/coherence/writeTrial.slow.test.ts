import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WriteTrial } from '../../src/coherence/postgresHealth.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { PostgresUnreachable } from '../../src/postgres/sqlErrors.ts';
import { waitFor } from '../support/waitFor.ts';

/** A trial whose writes end as they are told, one after the other. */
function trialOf(...ends: readonly (Error | null)[]): WriteTrial {
  let n = 0;
  const write = async (): Promise<unknown[]> => {
    const end = ends[n++] ?? null;
    if (end !== null) throw end;
    return [];
  };
  return new WriteTrial(write as unknown as Sql, 'a pod');
}

describe('the trial of a write', () => {
  test('tells who does not wait what the last write came to', async () => {
    const trial = trialOf(new PostgresUnreachable({ code: 'ECONNREFUSED' }));
    assert.equal(trial.lastTrouble(), null, 'nothing is known yet');
    assert.equal(await trial.trouble(), 'unreachable');
    assert.equal(trial.lastTrouble(), 'unreachable');
    await waitFor(() => trial.lastTrouble() === null);
  });

  test('is made again after one that failed by a defect', async () => {
    const trial = trialOf(new TypeError('a defect'));
    await assert.rejects(trial.trouble(), TypeError);
    assert.equal(await trial.trouble(), null);
  });
});
