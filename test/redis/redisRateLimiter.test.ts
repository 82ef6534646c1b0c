import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import type { LimitVerdict, RateLimiter, RateLimits } from '../../src/redis/rateLimiter.ts';
import { sharedRedis, skipWithoutRedis, startRedis } from '../support/redis.ts';
import { runs } from '../support/torture.ts';
import { answers, asks, eventually, HASTY_MS, LIMITS, startPod, type TestPod } from './pod.ts';
import { RateLimiterModel, SMALL_LIMITS, steps } from './rateLimiterModel.ts';

const SEED = 20_260_305;
const ALICE = '203.0.113.1';
const BOB = '203.0.113.2';
const skip = skipWithoutRedis();
const NOW_MS = Date.now();

const count = (verdicts: readonly LimitVerdict[], kind: string): number =>
  verdicts.filter((verdict) => (verdict.kind === 'limited' ? verdict.limit : verdict.kind) === kind).length;

/** What Redis holds under a name; for a counter its number. */
const held = async (pod: TestPod, name: string): Promise<string | null> => pod.redis.get(name);

const check = async (limiter: RateLimiter, request: Parameters<typeof asks>[0]): Promise<LimitVerdict> =>
  answers(limiter.check(asks(request), NOW_MS));

describe('the rate limiter in Redis', { skip }, () => {
  const redis = sharedRedis();
  test('answers any sequence of calls as the plain model does', async (t) => {
    const pods = await Promise.all(SMALL_LIMITS.map((limits) => startPod(t, redis.url, { limits })));
    await fc.assert(
      fc.asyncProperty(fc.nat(pods.length - 1), steps(0), fc.boolean(), async (which, sequence, atOnce) => {
        const pod = pods[which] as TestPod;
        await pod.redis.flushall();
        const model = new RateLimiterModel(SMALL_LIMITS[which] as RateLimits, 60_000, 3_600_000);
        const expected = sequence.map(({ request }) => model.check(request, 0));
        const verdicts: LimitVerdict[] = [];
        for (const { request } of sequence) if (!atOnce) verdicts.push(await pod.limiter.check(request, 0));
        if (atOnce)
          verdicts.push(...(await Promise.all(sequence.map(({ request }) => pod.limiter.check(request, 0)))));
        assert.deepEqual(verdicts, expected);
      }),
      { seed: SEED, numRuns: runs(60) },
    );
  });

  test('lets exactly the limit through when three pods ask at once', async (t) => {
    const pods = await Promise.all([1, 2, 3].map(() => startPod(t, redis.url, { namespace: 'three' })));
    const all = async (requests: number, request: (i: number) => Parameters<typeof asks>[0]) =>
      Promise.all(
        Array.from({ length: requests }, (_, i) => check((pods[i % 3] as TestPod).limiter, request(i))),
      );

    const byIp = await all(200, () => ({ ip: ALICE }));
    assert.equal(count(byIp, 'pass'), 120);
    assert.equal(count(byIp, 'ip_minute'), 80);

    const byKey = await all(400, (i) => ({ ip: `198.51.100.${i % 4}`, keyId: 1 }));
    assert.equal(count(byKey, 'pass'), 120);
    assert.equal(count(byKey, 'key_minute'), 280);
    const [pod] = pods as [TestPod];
    const charged = await Promise.all(
      [0, 1, 2, 3].map((i) => held(pod, `${pod.names.ipMinute}198.51.100.${i}`)),
    );
    assert.equal(
      charged.reduce((sum, n) => sum + Number(n), 0),
      120,
    );
    assert.equal(await held(pod, `${pod.names.keyHour}${1}`), '120');
  });

  test('starts a window with its first call, and no later call or refund makes it longer', async (t) => {
    const pod = await startPod(t, redis.url);
    const names = [`${pod.names.ipMinute}${ALICE}`, `${pod.names.keyMinute}${1}`, `${pod.names.keyHour}${1}`];
    await check(pod.limiter, { ip: ALICE, keyId: 1 });
    for (const [i, lengthMs] of [60_000, 60_000, 3_600_000].entries()) {
      const leftMs = await pod.redis.pttl(names[i] as string);
      assert.equal(leftMs > lengthMs - 30_000 && leftMs <= lengthMs, true, `${leftMs} ms`);
      await pod.redis.pexpire(names[i] as string, 30_000);
    }
    await check(pod.limiter, { ip: ALICE, keyId: 1 });
    await pod.redis.set(`${pod.names.keyHour}${2}`, LIMITS.keyHour);
    await check(pod.limiter, { ip: ALICE });
    await check(pod.limiter, { keyId: 2, refundIp: ALICE });
    for (const name of names) {
      assert.equal(await held(pod, name), '2');
      assert.equal((await pod.redis.pttl(name)) <= 30_000, true);
    }
  });

  test('keeps deployments apart that share one Redis', async (t) => {
    const limits = { ...LIMITS, ipMinute: 1 };
    const one = await startPod(t, redis.url, { limits, namespace: 'one' });
    const two = await startPod(t, redis.url, { limits, namespace: 'two' });
    assert.deepEqual(await check(one.limiter, { ip: ALICE }), { kind: 'pass' });
    assert.deepEqual(await check(two.limiter, { ip: ALICE }), { kind: 'pass' });
    await one.versions.confirm(1, 9);
    assert.equal((await check(two.limiter, { worldIds: [1], versions: [9] })).kind, 'stale');
  });
});

describe('versions of worlds', { skip }, () => {
  const redis = sharedRedis();
  const worlds = { worldIds: [1, 2], versions: [5, 7] };

  test('pass while memory holds what Redis knows, or more', async (t) => {
    const pod = await startPod(t, redis.url);
    await pod.versions.confirm(1, 5);
    await pod.versions.confirm(2, 6);
    assert.deepEqual(await check(pod.limiter, { ip: ALICE, keyId: 1, ...worlds }), { kind: 'pass' });
  });

  test('are stale when one is newer: the address is charged and the key is not', async (t) => {
    const pod = await startPod(t, redis.url);
    await pod.versions.confirm(1, 5);
    await pod.versions.publish(2, 8);
    assert.deepEqual(await check(pod.limiter, { ip: ALICE, keyId: 1, ...worlds }), {
      kind: 'stale',
      worlds: [{ worldId: 2, state: 'newer', version: 8 }],
    });
    assert.equal(await held(pod, `${pod.names.ipMinute}${ALICE}`), '1');
    assert.equal(await held(pod, `${pod.names.keyMinute}${1}`), null);

    const again = { keyId: 1, refundIp: ALICE, worldIds: [1, 2], versions: [5, 8] };
    assert.deepEqual(await check(pod.limiter, again), { kind: 'pass' });
    assert.equal(await held(pod, `${pod.names.ipMinute}${ALICE}`), '1');
    assert.equal(await held(pod, `${pod.names.keyMinute}${1}`), '1');
  });

  test('are not looked at in a verified request, so a call can always be finished', async (t) => {
    const pod = await startPod(t, redis.url);
    await pod.versions.publish(1, 99);
    assert.deepEqual(await check(pod.limiter, { keyId: 1, ...worlds, verified: true }), { kind: 'pass' });
  });

  test('come after the address limit, and a call refused by it leaves no ticket', async (t) => {
    const pod = await startPod(t, redis.url, { limits: { ...LIMITS, ipMinute: 1 } });
    await check(pod.limiter, { ip: ALICE });
    const rejected = await check(pod.limiter, { ip: ALICE, keyId: 1, ...worlds });
    assert.deepEqual(rejected, { kind: 'limited', limit: 'ip_minute' });
    assert.equal(await held(pod, `${pod.names.world}${1}`), null);
  });

  test('come before the key limits, even full ones', async (t) => {
    const pod = await startPod(t, redis.url, { limits: { ...LIMITS, keyMinute: 1 } });
    await check(pod.limiter, { keyId: 1 });
    assert.equal((await check(pod.limiter, { ip: ALICE, keyId: 1, ...worlds })).kind, 'stale');
    const again = { keyId: 1, refundIp: ALICE, ...worlds, verified: true };
    assert.deepEqual(await check(pod.limiter, again), { kind: 'limited', limit: 'key_minute' });
    assert.equal(await held(pod, `${pod.names.ipMinute}${ALICE}`), null);
  });

  test('that are missing are stale until a reader gives them back with its ticket', async (t) => {
    const pod = await startPod(t, redis.url);
    await pod.versions.confirm(2, 7);
    const verdict = await check(pod.limiter, { ip: ALICE, keyId: 1, ...worlds });
    assert.ok(verdict.kind === 'stale' && verdict.worlds.length === 1);
    const [missing] = verdict.worlds;
    assert.ok(missing?.state === 'missing' && missing.worldId === 1);
    assert.deepEqual(
      await check(pod.limiter, { ...worlds }),
      verdict,
      'readers at the same time share a ticket',
    );
    assert.equal(await pod.versions.restore(1, 5, missing.ticket), true);
    assert.deepEqual(await check(pod.limiter, { ip: ALICE, keyId: 1, ...worlds }), { kind: 'pass' });
  });

  test('survive FLUSHALL in the middle of a call, and a ticket from before it is worth nothing', async (t) => {
    const pod = await startPod(t, redis.url);
    const ticketOf = (verdict: LimitVerdict): string => {
      assert.ok(verdict.kind === 'stale' && verdict.worlds[0]?.state === 'missing');
      return verdict.worlds[0].ticket;
    };
    const world = { worldIds: [1], versions: [5] };
    const old = ticketOf(await check(pod.limiter, { ip: ALICE, keyId: 1, ...world }));
    // The reader reads version 5; then a writer commits 6, and Redis is emptied.
    await pod.versions.publish(1, 6);
    await pod.versions.confirm(1, 6);
    await pod.redis.flushall();
    const fresh = ticketOf(await check(pod.limiter, { ip: ALICE, keyId: 1, ...world }));
    assert.notEqual(fresh, old);
    await pod.versions.restore(1, 5, old);
    assert.equal((await check(pod.limiter, world)).kind, 'stale');
    await pod.versions.restore(1, 6, fresh);
    assert.deepEqual(await check(pod.limiter, { worldIds: [1], versions: [6] }), { kind: 'pass' });
    assert.deepEqual(await check(pod.limiter, world), {
      kind: 'stale',
      worlds: [{ worldId: 1, state: 'newer', version: 6 }],
    });
  });
});

describe('after a new connection', { skip }, () => {
  const redis = sharedRedis();
  test('versions count as unverified until memory has caught up', async (t) => {
    let finish = (): void => {};
    let asked = 0;
    const pod = await startPod(t, redis.url, {
      catchUp: () => {
        asked++;
        return new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
    });
    await pod.versions.confirm(1, 5);
    const request = { ip: ALICE, keyId: 1, worldIds: [1], versions: [5] };
    assert.deepEqual(await check(pod.limiter, request), { kind: 'unverified' });
    assert.equal(await held(pod, `${pod.names.ipMinute}${ALICE}`), '1');
    assert.equal(await held(pod, `${pod.names.keyMinute}${1}`), null);
    assert.deepEqual(await check(pod.limiter, { ...request, ip: null, verified: true }), { kind: 'pass' });
    finish();
    await nextTurn();
    assert.deepEqual(await check(pod.limiter, request), { kind: 'pass' });
    assert.equal(asked, 1);

    pod.redis.disconnect(true);
    await eventually('the second catching up', async () => {
      await check(pod.limiter, {});
      return asked === 2;
    });
    assert.deepEqual(await check(pod.limiter, request), { kind: 'unverified' });
    finish();
    await nextTurn();
    assert.deepEqual(await check(pod.limiter, request), { kind: 'pass' });
  });

  test('a version that is newer than memory counts before memory has caught up, and charges no key', async (t) => {
    const pod = await startPod(t, redis.url, { catchUp: () => new Promise(() => undefined) });
    await pod.versions.confirm(1, 6);
    const request = { ip: ALICE, keyId: 1, worldIds: [1], versions: [5] };
    assert.deepEqual(await check(pod.limiter, request), {
      kind: 'stale',
      worlds: [{ worldId: 1, state: 'newer', version: 6 }],
    });
    assert.equal(await held(pod, `${pod.names.ipMinute}${ALICE}`), '1');
    assert.equal(await held(pod, `${pod.names.keyMinute}${1}`), null);
  });

  test('a catching up that fails is reported, and the next call asks again', async (t) => {
    const failure = new Error('no Postgres');
    const failures: unknown[] = [];
    let works = false;
    const pod = await startPod(t, redis.url, {
      catchUp: async () => {
        if (!works) throw failure;
      },
      onCatchUpFailed: (error) => failures.push(error),
    });
    await pod.versions.confirm(1, 5);
    const request = { worldIds: [1], versions: [5] };
    assert.deepEqual(await check(pod.limiter, request), { kind: 'unverified' });
    assert.equal(failures[0], failure);
    works = true;
    await check(pod.limiter, request);
    assert.deepEqual(await check(pod.limiter, request), { kind: 'pass' });
  });
});

describe('while Redis is lost', { skip }, () => {
  const request = { ip: ALICE, keyId: 1, worldIds: [1], versions: [5] };

  test('a silent Redis costs one call its deadline, and the next ones nothing', async (t) => {
    const server = await startRedis(t);
    const pod = await startPod(t, server.url, { deadlineMs: HASTY_MS });
    await pod.versions.confirm(1, 5);
    server.pause();
    const first = await Promise.all([check(pod.limiter, request), check(pod.limiter, { ip: BOB })]);
    assert.deepEqual(first, [{ kind: 'unverified' }, { kind: 'pass' }]);
    assert.deepEqual(
      pod.limiter.check(asks(request), NOW_MS),
      { kind: 'unverified' },
      'answered without a promise',
    );
    assert.equal(pod.events.at(-1)?.kind, 'lost');
    server.resume();
    await eventually('Redis answers again', async () => (await check(pod.limiter, request)).kind === 'pass');
    assert.equal(pod.events.at(-1)?.kind, 'back');
  });

  test('one call at a time tries a silent Redis again, until it answers', async (t) => {
    const server = await startRedis(t);
    const pod = await startPod(t, server.url, { deadlineMs: HASTY_MS });
    server.pause();
    await check(pod.limiter, { ip: ALICE });
    await eventually('the rest is over', () => pod.port.isUsable);
    const probe = pod.limiter.check(asks({ ip: ALICE }), NOW_MS);
    assert.ok(probe instanceof Promise);
    await nextTurn();
    assert.deepEqual(
      pod.limiter.check(asks({ ip: ALICE }), NOW_MS),
      { kind: 'pass' },
      'the others do not wait',
    );
    assert.deepEqual(await answers(probe), { kind: 'pass' });
    server.resume();
    await eventually('Redis answers again', async () => {
      await check(pod.limiter, { ip: BOB });
      return pod.events.at(-1)?.kind === 'back';
    });
  });

  test('a command that was not answered is never sent again', async (t) => {
    const server = await startRedis(t);
    const pod = await startPod(t, server.url, { deadlineMs: HASTY_MS });
    await check(pod.limiter, { ip: ALICE });
    server.pause();
    await check(pod.limiter, { ip: ALICE });
    server.resume();
    await eventually('Redis answers again', async () => {
      await check(pod.limiter, { ip: BOB });
      return pod.events.at(-1)?.kind === 'back';
    });
    assert.equal(await held(pod, `${pod.names.ipMinute}${ALICE}`), '2');

    server.pause();
    const cutOff = check(pod.limiter, { ip: ALICE });
    await server.restart();
    assert.deepEqual(await cutOff, { kind: 'pass' });
    await eventually('the connection is back', () => pod.port.isUsable);
    assert.equal(await held(pod, `${pod.names.ipMinute}${ALICE}`), null);
  });

  test('limits hold for this process, and verified calls are counted', async (t) => {
    const server = await startRedis(t);
    const pod = await startPod(t, server.url, { limits: { ipMinute: 3, keyMinute: 1, keyHour: 9 } });
    await server.stop();
    await eventually('the loss is known', () => !pod.port.isUsable);
    assert.deepEqual(await check(pod.limiter, request), { kind: 'unverified' });
    const again = { ...request, ip: null, refundIp: ALICE, verified: true };
    assert.deepEqual(await check(pod.limiter, again), { kind: 'pass' });
    assert.deepEqual(await check(pod.limiter, request), { kind: 'unverified' });
    assert.deepEqual(await check(pod.limiter, again), { kind: 'limited', limit: 'key_minute' });
    assert.deepEqual(await check(pod.limiter, request), { kind: 'unverified' });
    assert.deepEqual(await check(pod.limiter, request), { kind: 'unverified' });
    assert.deepEqual(await check(pod.limiter, request), { kind: 'limited', limit: 'ip_minute' });
  });

  test('a restarted Redis, which knows neither scripts nor versions, is taken up again', async (t) => {
    const server = await startRedis(t);
    const pod = await startPod(t, server.url, { deadlineMs: HASTY_MS });
    await pod.versions.confirm(1, 5);
    await server.restart();
    let verdict = await check(pod.limiter, request);
    await eventually('Redis is asked again', async () => {
      verdict = await check(pod.limiter, request);
      return verdict.kind === 'stale';
    });
    assert.ok(verdict.kind === 'stale' && verdict.worlds[0]?.state === 'missing');
    assert.equal(await pod.versions.restore(1, 5, verdict.worlds[0].ticket), true);
    assert.deepEqual(await check(pod.limiter, request), { kind: 'pass' });
  });

  test('forgotten scripts are sent again without a loss', async (t) => {
    const pod = await startPod(t, (await startRedis(t)).url);
    await check(pod.limiter, { ip: ALICE });
    await pod.redis.script('FLUSH');
    assert.deepEqual(await check(pod.limiter, { ip: ALICE }), { kind: 'pass' });
    assert.equal(await held(pod, `${pod.names.ipMinute}${ALICE}`), '2');
    assert.deepEqual(
      pod.events.map(({ kind }) => kind),
      ['back'],
    );
  });

  test('an error reply counts as a loss', async (t) => {
    const pod = await startPod(t, (await startRedis(t)).url);
    await pod.redis.config('SET', 'maxmemory', '1');
    assert.deepEqual(await check(pod.limiter, { ip: ALICE }), { kind: 'pass' });
    assert.equal(pod.events.at(-1)?.kind, 'lost');
  });
});
