import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Answer, CutAnswer, errorAnswer, NotBegun, type StreamedBody } from '../../src/http/answer.ts';
import { answerInTurns, BulkCalls } from '../../src/http/bulkCalls.ts';
import { Overloaded } from '../../src/lib/fairSemaphore.ts';
import { OutOfTime } from '../../src/lib/time.ts';
import { AtOnce, type Steps, WorkTurns } from '../../src/lib/workTurns.ts';

const BUSY = 1;
const CALM = 2;
const STEPS = 500;

/** Runs batches of so many steps, each of which returns how many steps the busy account had made when it ended. */
function countedCalls() {
  const calls = new BulkCalls(new WorkTurns<string | number>(3));
  const steps = new Map<number, number>();
  let started = 0;
  function* batch(accountId: number, count: number): Steps<number> {
    started++;
    for (let n = 0; n < count; n++) {
      steps.set(accountId, (steps.get(accountId) ?? 0) + 1);
      yield;
    }
    return steps.get(BUSY) ?? 0;
  }
  return {
    run: (accountId: number, count = STEPS) => calls.run(accountId, () => batch(accountId, count)),
    started: () => started,
  };
}

describe('batches', () => {
  test('of one account take the turns of one, however many there are', async () => {
    const { run } = countedCalls();
    const busy = Array.from({ length: 20 }, () => run(BUSY));
    const before = await run(CALM);
    assert.ok(before <= STEPS + 2, `${before} steps of the busy account came first`);
    assert.equal(Math.max(...(await Promise.all(busy))), 20 * STEPS);
  });

  test('of one account run two at a time, and one more than fifty that wait is refused', async () => {
    const { run, started } = countedCalls();
    const accepted = Array.from({ length: 52 }, () => run(BUSY, 3));
    assert.equal(started(), 0, 'none begins before the sockets were read');
    await assert.rejects(run(BUSY, 3), Overloaded);
    await run(CALM, 1);
    assert.ok(started() <= 4, `${started()} batches began`);
    assert.equal((await Promise.all(accepted)).length, 52);
  });

  test('that are refused after their first step undo what that has begun', async () => {
    const turns = new WorkTurns<string | number>(3);
    const bulkCalls = new BulkCalls(turns);
    const waiting = Array.from({ length: 52 }, () => bulkCalls.run(BUSY, () => steps([])));
    const undone: string[] = [];
    function* steps(noted: string[]): Steps<Answer> {
      try {
        yield;
        return errorAnswer('NOT_FOUND');
      } finally {
        noted.push('undone');
      }
    }
    const refused = answerInTurns({ bulkCalls, atOnce: new AtOnce(turns) }, BUSY, steps(undone));
    await assert.rejects(Promise.resolve(refused), Overloaded);
    assert.deepEqual(undone, ['undone']);
    await Promise.all(waiting);
  });

  test('without end are cut off', async (t) => {
    const { run } = countedCalls();
    let nowMs = 0;
    t.mock.method(performance, 'now', () => {
      nowMs += 1_000;
      return nowMs;
    });
    await assert.rejects(run(BUSY, Number.POSITIVE_INFINITY), OutOfTime);
  });
});

describe('answers of batches', () => {
  /** An answer of so many pieces. */
  const answerOf = (calls: BulkCalls, accountId: number, pieces = 3): StreamedBody => {
    const { body } = calls.answer(accountId, function* (json) {
      for (let n = 0; n < pieces; n++) {
        json.add(String(n).repeat(100_000));
        yield;
      }
    });
    assert.ok(body !== null && typeof body === 'object' && 'next' in body);
    return body;
  };
  const newCalls = () => new BulkCalls(new WorkTurns<string | number>(3));

  test('are handed over in pieces, with the length of all of them', async () => {
    const pieces: Buffer[] = [];
    const body = answerOf(newCalls(), CALM);
    await body.open();
    assert.equal(body.bytes, 300_000);
    while (await body.next((piece) => void pieces.push(piece)));
    body.close();
    assert.equal(pieces.length, 3);
    assert.equal(Buffer.concat(pieces).toString(), ['0', '1', '2'].map((n) => n.repeat(100_000)).join(''));
  });

  test('that nobody reads keep back the account of their reader, and no other', async () => {
    const calls = newCalls();
    const unread = [answerOf(calls, BUSY), answerOf(calls, BUSY)];
    for (const body of unread) await body.open();
    let isOpen = false;
    const third = answerOf(calls, BUSY);
    const opened = third.open().then(() => {
      isOpen = true;
    });
    const other = answerOf(calls, CALM);
    await other.open();
    other.close();
    assert.equal(isOpen, false);
    unread[0]?.close();
    await opened;
    third.close();
  });

  test('that take too much processor time are a 422 that says so, and give their permit back', async (t) => {
    let nowMs = 0;
    t.mock.method(performance, 'now', () => nowMs);
    const calls = new BulkCalls(new WorkTurns<string | number>(3), 5);
    for (let n = 0; n < 3; n++) {
      const { body } = calls.answer(BUSY, function* () {
        for (;;) {
          nowMs += 1;
          yield;
        }
      });
      await assert.rejects((body as StreamedBody).open(), (error) => {
        assert.ok(error instanceof NotBegun);
        assert.equal(error.answer.status, 422);
        assert.match(String(error.answer.body), /"field":"points".*send them in several calls/);
        return true;
      });
    }
    const body = answerOf(calls, BUSY);
    await body.open();
    body.close();
  });

  test('that wait too long for those before them are refused, and take no permit later', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const calls = newCalls();
    const unread = [answerOf(calls, BUSY), answerOf(calls, BUSY)];
    for (const body of unread) await body.open();
    const late = assert.rejects(answerOf(calls, BUSY).open(), Overloaded);
    t.mock.timers.tick(15_000);
    await late;
    for (const body of unread) body.close();
    const after = [answerOf(calls, BUSY), answerOf(calls, BUSY)];
    for (const body of after) await body.open();
    for (const body of after) body.close();
  });

  test('are cut when their reader takes more than a minute', async (t) => {
    const body = answerOf(newCalls(), CALM);
    await body.open();
    const nowMs = performance.now();
    t.mock.method(performance, 'now', () => nowMs + 60_001);
    await assert.rejects(
      body.next(() => undefined),
      CutAnswer,
    );
    body.close();
  });

  test('that cannot be finished give their permit back', async () => {
    const calls = newCalls();
    const reason = new Error('no');
    for (let n = 0; n < 4; n++) {
      // biome-ignore lint/correctness/useYield: it has no step but its last
      const { body } = calls.answer(BUSY, function* () {
        throw reason;
      });
      await assert.rejects((body as StreamedBody).open(), reason);
    }
    const body = answerOf(calls, BUSY);
    await body.open();
    body.close();
  });
});
