import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DatabaseError } from 'pg';
import { DeadlineExceeded } from '../../src/lib/time.ts';
import { errorFields, PostgresUnreachable, unavailability } from '../../src/postgres/sqlErrors.ts';

test('a server that does not answer is not one that cannot be reached', () => {
  for (const message of ['Query read timeout', 'timeout exceeded when trying to connect', 'timeout expired'])
    assert.equal(unavailability(new PostgresUnreachable(new Error(message))), 'no_answer');
  assert.equal(unavailability(new PostgresUnreachable(new Error('Connection terminated'))), 'unreachable');
});

test('a warning names its reason, whatever has kept Postgres from answering', () => {
  const full = Object.assign(new DatabaseError('no room', 7, 'error'), { code: '53100' });
  assert.deepEqual(errorFields(full), { reason: 'disk_full', code: '53100' });
  const refused = new PostgresUnreachable({ code: 'ECONNREFUSED' });
  assert.deepEqual(errorFields(refused), { reason: 'unreachable', code: 'ECONNREFUSED' });
  assert.deepEqual(errorFields(new DeadlineExceeded('late')), { reason: 'no_answer', code: undefined });
  const defect = new TypeError('a defect');
  assert.deepEqual(errorFields(defect), { err: defect });
  const wrong = Object.assign(new DatabaseError('wrong', 5, 'error'), { code: '42601' });
  assert.deepEqual(errorFields(wrong), { err: wrong });
});
