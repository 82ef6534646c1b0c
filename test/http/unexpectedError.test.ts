import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import { DatabaseError } from 'pg';
import { unexpectedErrorAnswer } from '../../src/http/unexpectedError.ts';
import { DeadlineExceeded, OutOfTime } from '../../src/lib/time.ts';
import { TooMuchWork } from '../../src/lib/workTurns.ts';
import { PostgresUnreachable } from '../../src/postgres/sqlErrors.ts';

const request = { method: 'GET' } as IncomingMessage;
const SECRET = 'relation "of somebody else" with key fk_secret';

/** An answer of Postgres with this SQLSTATE. */
function answerOf(code: string): DatabaseError {
  return Object.assign(new DatabaseError(SECRET, SECRET.length, 'error'), { code, detail: SECRET });
}

const REASONS: readonly (readonly [what: string, error: unknown, message: RegExp, reason: string])[] = [
  ['a full disk', answerOf('53100'), /no disk space/, 'disk_full'],
  ['a read-only server', answerOf('25006'), /read-only/, 'read_only'],
  ['too many connections', answerOf('53300'), /no more connections/, 'too_many_connections'],
  ['no memory', answerOf('53200'), /no memory/, 'out_of_memory'],
  ['a transaction that was idle for too long', answerOf('25P03'), /waited too long/, 'time_limit'],
  ['a lock that was not to be had', answerOf('55P03'), /waited too long/, 'time_limit'],
  ['a deadlock', answerOf('40P01'), /another transaction/, 'conflict'],
  ['a server that starts', answerOf('57P03'), /starting or shutting down/, 'starting_or_stopping'],
  ['an error of the disk', answerOf('58030'), /trouble with its disk/, 'disk_error'],
  ['no answer', new DeadlineExceeded(SECRET), /did not answer in time/, 'no_answer'],
  ['no connection', new PostgresUnreachable({ code: 'ECONNREFUSED' }), /cannot be reached/, 'unreachable'],
  ['a replica', new PostgresUnreachable({ code: 'REPLICA' }), /replica/, 'replica'],
  ['another server', new PostgresUnreachable({ code: 'OTHER_SERVER' }), /another server/, 'other_server'],
  [
    'a commit without its replica',
    new PostgresUnreachable({ code: 'NOT_REPLICATED' }),
    /may have stored/,
    'not_replicated',
  ],
];

describe('a call that Postgres cannot serve now is told why, and so is the log', () => {
  for (const [what, error, message, reason] of REASONS) {
    test(what, () => {
      const logged: object[] = [];
      const note = (fields: object) => void logged.push(fields);
      const ports = { log: { warn: note, error: () => assert.fail() }, onDamaged: () => assert.fail() };
      const { status, body } = unexpectedErrorAnswer(error, request, ports);
      assert.equal(status, 503);
      assert.match(String(body), message);
      assert.doesNotMatch(String(body) + JSON.stringify(logged), /secret/);
      assert.deepEqual(
        logged.map((fields) => (fields as { reason: string }).reason),
        [reason],
      );
    });
  }

  test('the limit of a statement is nothing for the log', () => {
    const ports = {
      log: { warn: () => assert.fail(), error: () => assert.fail() },
      onDamaged: () => assert.fail(),
    };
    const { status, body } = unexpectedErrorAnswer(answerOf('57014'), request, ports);
    assert.equal(status, 503);
    assert.match(String(body), /ask for less/);
  });
});

describe('a call that takes too long by itself does not blame the database, and the log has nothing of it', () => {
  const ports = {
    log: { warn: () => assert.fail(), error: () => assert.fail() },
    onDamaged: () => assert.fail(),
  };
  for (const [what, error, status, message] of [
    ['too long beside others', new OutOfTime(SECRET), 503, /took longer than a call may/],
    ['more processor time than a call may', new TooMuchWork(SECRET), 422, /TOO_COMPLEX/],
  ] as const) {
    test(what, () => {
      const { status: answered, body } = unexpectedErrorAnswer(error, request, ports);
      assert.equal(answered, status);
      assert.match(String(body), message);
      assert.doesNotMatch(String(body), /database|secret/);
    });
  }
});
