import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type Answer, errorAnswer } from '../../src/http/answer.ts';
import { HELD_MAX, HeldAnswers, type LikelyCaller, Shedder } from '../../src/http/shedder.ts';
import {
  NO_SHEDDING,
  SHED_CLASSES,
  SHED_LIMITS,
  type ShedClass,
  type Shedding,
  STANDING_MS,
  stepShedding,
} from '../../src/http/shedding.ts';
import { ACCOUNT, IMEI, keyOf, serveSide } from '../support/http/apiSide.ts';
import { describedRoutes } from '../support/http/describedApi.ts';
import { bareRequest } from '../support/http/http.ts';

/** What is refused of bulk and of polls after looks that found the loop late by `lateMs`, each `everyMs` after the last. */
interface Looks {
  readonly lateMs: number;
  readonly everyMs?: number;
  readonly count: number;
}

const after = (looks: readonly Looks[], from: Shedding = NO_SHEDDING): Shedding =>
  looks.reduce((shedding, { lateMs, everyMs = lateMs + 50, count }) => {
    let next = shedding;
    for (let n = 0; n < count; n++) next = stepShedding(next, { bulk: lateMs, poll: lateMs }, everyMs);
    return next;
  }, from);
const shares = ({ bulk, poll }: Shedding) => [bulk.share, poll.share];

const ALL_BULK: Shedding = { bulk: { share: 1, lateForMs: 2_000 }, poll: { share: 0, lateForMs: 0 } };
const ALL: Shedding = { bulk: { share: 1, lateForMs: 0 }, poll: { share: 1, lateForMs: 2_000 } };

describe('calls are refused by how late the loop is, and for how long', () => {
  const cases: readonly (readonly [
    what: string,
    looks: readonly Looks[],
    from: Shedding,
    expected: number[],
  ])[] = [
    ['a calm loop', [{ lateMs: 5, count: 1_000 }], NO_SHEDDING, [0, 0]],
    ['a busy loop', [{ lateMs: 95, count: 1_000 }], NO_SHEDDING, [0, 0]],
    ['one pause of a minute', [{ lateMs: 60_000, count: 1 }], NO_SHEDDING, [0, 0]],
    ['three pauses in a row', [{ lateMs: 60_000, count: 3 }], NO_SHEDDING, [0, 0]],
    [
      'pauses with a calm look between them',
      [
        { lateMs: 2_000, count: 3 },
        { lateMs: 9, count: 1 },
        { lateMs: 2_000, count: 3 },
      ],
      NO_SHEDDING,
      [0, 0],
    ],
    ['late for less than two seconds', [{ lateMs: 300, count: 5 }], NO_SHEDDING, [0, 0]],
    ['late for two seconds', [{ lateMs: 350, count: 5 }], NO_SHEDDING, [0.4, 0]],
    ['late for a minute, but not too late for polls', [{ lateMs: 450, count: 60 }], NO_SHEDDING, [1, 0]],
    ['far too late, before all of bulk is refused', [{ lateMs: 2_000, count: 5 }], NO_SHEDDING, [1, 0]],
    ['far too late for two seconds more', [{ lateMs: 2_000, count: 9 }], NO_SHEDDING, [1, 0.5]],
    ['far too late for long', [{ lateMs: 2_000, count: 60 }], NO_SHEDDING, [1, 1]],
    ['between the limits, nothing changes', [{ lateMs: 35, count: 1_000 }], ALL_BULK, [1, 0]],
    ['not quite calm, polls come back and bulk does not', [{ lateMs: 60, count: 1_000 }], ALL, [1, 0]],
    ['between the limits of polls, nothing changes', [{ lateMs: 150, count: 1_000 }], ALL, [1, 1]],
    ['calm for a second', [{ lateMs: 0, everyMs: 50, count: 20 }], ALL_BULK, [0.8, 0]],
    ['calm for five seconds', [{ lateMs: 0, everyMs: 50, count: 101 }], ALL_BULK, [0, 0]],
    [
      'late again before it was calm for long',
      [
        { lateMs: 0, everyMs: 50, count: 20 },
        { lateMs: 150, count: 1 },
      ],
      ALL_BULK,
      [1, 0],
    ],
  ];
  for (const [what, looks, from, expected] of cases) {
    test(what, () => {
      const rounded = shares(after(looks, from)).map((share) => Math.round(share * 1_000) / 1_000);
      assert.deepEqual(rounded, expected);
    });
  }

  test('no class comes back before it has begun to fall, and polls go after bulk', () => {
    for (const shedAs of SHED_CLASSES) {
      const { beginMs, riseMs, fallMs } = SHED_LIMITS[shedAs];
      assert.ok(fallMs < riseMs && riseMs < beginMs, shedAs);
    }
    assert.ok(SHED_LIMITS.bulk.beginMs < SHED_LIMITS.poll.fallMs + 1);
    assert.ok(STANDING_MS >= 2_000, 'a machine that is busy for a moment is none that is too small');
  });
});

const POLLS = [
  'DELETE /areas/:id',
  'DELETE /shares/:id',
  'GET /areas/:id',
  'GET /areas/:id/contains',
  'GET /areas/containing',
  'GET /devices/:imei',
  'GET /devices/:imei/commands',
  'GET /devices/:imei/location',
  'GET /devices/changes',
  'GET /devices/nearest',
  'GET /events/feed',
  'GET /stream',
  'GET /usage',
  'PATCH /areas/:id',
  'POST /areas',
  'POST /shares',
  'PUT /areas/by-external-id/*externalId',
];

test('every route has a class: on v3 polls are these, and all else is bulk', () => {
  const routes = describedRoutes();
  assert.ok(routes.length > 80);
  for (const { method, path, shedAs } of routes)
    assert.ok(SHED_CLASSES.includes(shedAs), `${method} ${path}`);
  const polls = routes
    .filter(({ versions, shedAs }) => versions.includes('v3') && shedAs === 'poll')
    .map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual(polls.toSorted(), POLLS);
});

describe('answers that are held', () => {
  const answer = errorAnswer('SERVICE_UNAVAILABLE');

  /** Which of the answers have been given. */
  async function givenOf(answers: readonly (Answer | Promise<Answer>)[]): Promise<boolean[]> {
    const held = Symbol('held');
    return Promise.all(answers.map(async (each) => (await Promise.race([each, held])) !== held));
  }

  test('are given when each has waited for its time', async () => {
    const answers = new HeldAnswers(100);
    const asked = [answers.hold(answer, 0), answers.hold(answer, 40), answers.hold(answer, 90)];
    answers.release(99);
    assert.deepEqual(await givenOf(asked), [false, false, false]);
    answers.release(140, 1);
    assert.deepEqual(await givenOf(asked), [true, false, false]);
    answers.release(140);
    assert.deepEqual(await givenOf(asked), [true, true, false]);
    answers.release(Number.POSITIVE_INFINITY);
    assert.deepEqual(await Promise.all(asked), [answer, answer, answer]);
  });

  test('are given at once where thousands wait', () => {
    const answers = new HeldAnswers(100);
    for (let n = 0; n < HELD_MAX; n++) assert.ok(answers.hold(answer, n) instanceof Promise);
    assert.equal(answers.hold(answer, 0), answer);
    answers.release(100);
    assert.ok(answers.hold(answer, 0) instanceof Promise);
  });
});

describe('calls that wait for their turn', () => {
  /** A shedder after looks of six seconds, before each of which a call of each class had waited so long. */
  function afterWaiting(t: TestContext, waitedMs: Readonly<Record<ShedClass, number>>): Shedder {
    let nowMs = 0;
    t.mock.method(performance, 'now', () => nowMs);
    t.mock.timers.enable({ apis: ['setInterval'] });
    const log = { warn: () => undefined, info: () => undefined };
    const shedder = new Shedder({ log, onRefused: () => undefined });
    shedder.start();
    for (let n = 0; n < 120; n++) {
      for (const shedAs of SHED_CLASSES) {
        shedder.noteWait(shedAs, waitedMs[shedAs] / 2);
        shedder.noteWait(shedAs, waitedMs[shedAs] * 1.5);
      }
      nowMs += 50;
      t.mock.timers.tick(50);
    }
    return shedder;
  }

  const cases = [
    ['polls for a moment', { bulk: 0, poll: 90 }, [false, false]],
    ['polls', { bulk: 0, poll: 110 }, [true, false]],
    ['polls for very long', { bulk: 0, poll: 510 }, [true, true]],
    ['lists for less than a second', { bulk: 900, poll: 0 }, [false, false]],
    ['lists', { bulk: 1_100, poll: 0 }, [true, false]],
    ['lists for very long', { bulk: 60_000, poll: 0 }, [true, false]],
  ] as const;
  for (const [what, waitedMs, refused] of cases) {
    test(`make the pod refuse or not: ${what}`, (t) => {
      const shedder = afterWaiting(t, waitedMs);
      assert.equal(shedder.lateMs, waitedMs.poll);
      assert.deepEqual(
        SHED_CLASSES.map((shedAs) => shedder.isRefusing(shedAs)),
        refused,
      );
      assert.equal(shedder.isActive, refused[0]);
      shedder.stop();
      assert.equal(shedder.isActive, false);
    });
  }
});

describe('while bulk is refused', async () => {
  const refused = { ...errorAnswer('SERVICE_UNAVAILABLE', 'too much'), headers: { 'Retry-After': '5' } };
  const callers: LikelyCaller[] = [];
  const { server, url } = await serveSide(undefined, {
    shedder: {
      isActive: true,
      refuse: (shedAs, caller) => {
        callers.push(caller);
        return shedAs === 'bulk' ? refused : null;
      },
      isRefusing: () => true,
      noteWait: () => undefined,
    },
  });
  server.unref();
  const cases = [
    ['a list', '/devices', {}, 503],
    ['a list for nobody: who calls is not looked at', '/areas', { 'X-API-Key': 'fk_' }, 503],
    ['a poll', '/devices/nearest?lat=41.9&lng=12.5', {}, 200],
    ['another poll', `/devices/${IMEI}`, {}, 200],
    ['no path', '/nothing', {}, 404],
  ] as const;
  for (const [what, path, headers, status] of cases) {
    test(`${what} is answered with ${status}`, async () => {
      const reply = await bareRequest(url, `/api/v3${path}`, {
        headers: { 'X-API-Key': keyOf('now'), ...headers },
      });
      assert.equal(reply.status, status);
      assert.equal(reply.headers['retry-after'], status === 503 ? '5' : undefined);
    });
  }

  test('a caller is the account of a key in memory, else the network of the address', () => {
    assert.deepEqual(callers, [ACCOUNT, '127.0.0.1', ACCOUNT, ACCOUNT]);
  });
});
