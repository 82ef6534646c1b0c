import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Overloaded } from '../../src/lib/fairSemaphore.ts';
import { DeliverySlots, type Slot } from '../../src/webhooks/delivery/deliveryWorkers.ts';

const WAITING = { waiting: 3, waitingPerKey: 2 };
const OWNER = 1;
const SLOW_AFTER_MS = 1_000;

function startPlaces(t: TestContext): DeliverySlots {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  return new DeliverySlots({
    byPace: {
      quick: { running: 3, runningPerKey: 2, ...WAITING },
      new: { running: 3, runningPerKey: 2, ...WAITING },
      slow: { running: 2, runningPerKey: 1, ...WAITING },
    },
    slowAfterMs: SLOW_AFTER_MS,
  });
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Whether a place was given at once; else it is still waited for. */
async function isGiven(place: Promise<Slot>): Promise<boolean> {
  const now = Symbol('now');
  return (await Promise.race([place, turn().then(() => now)])) !== now;
}

/** An attempt of an endpoint that has a place, and the way to end it. */
function hang(place: Slot): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const attempt = place.attempt(() => promise);
  return async () => {
    resolve();
    await attempt;
    place.release();
  };
}

async function beSlow(
  t: TestContext,
  places: DeliverySlots,
  webhookId: number,
  accountId: number,
): Promise<void> {
  const end = hang(await places.acquire(webhookId, accountId));
  t.mock.timers.tick(SLOW_AFTER_MS);
  await end();
}

async function beQuick(places: DeliverySlots, webhookId: number, accountId: number): Promise<void> {
  await hang(await places.acquire(webhookId, accountId))();
}

describe('places of endpoints', () => {
  test('more than may wait are refused, and nothing is kept of them', async (t) => {
    const places = startPlaces(t);
    const taken = [11, 12, 13, 14].map((id) => places.acquire(id, OWNER));
    await assert.rejects(places.acquire(15, OWNER), Overloaded);
    assert.equal(places.size, 4);
    for (const place of taken) (await place).release();
    assert.equal(places.size, 0);
  });

  test('who was slow waits for a place of the slow, whoever is quick meanwhile; one quick attempt brings it back', async (t) => {
    const places = startPlaces(t);
    for (const id of [11, 12]) await beSlow(t, places, id, OWNER);
    await beQuick(places, 13, OWNER);
    const slow = places.acquire(11, OWNER);
    const slowToo = places.acquire(12, OWNER);
    assert.deepEqual([await isGiven(slow), await isGiven(slowToo)], [true, false]);
    assert.equal(await isGiven(places.acquire(13, OWNER)), true);
    const end = hang(await slow);
    t.mock.timers.tick(SLOW_AFTER_MS);
    assert.equal((await slow).isHeld, true, 'a slow one keeps its place');
    await end();
    assert.equal(await isGiven(slowToo), true);
    await hang(await slowToo)();
    assert.equal(await isGiven(places.acquire(12, OWNER)), true, 'back among the quick');
    assert.equal(await isGiven(places.acquire(11, OWNER)), true, 'and the place of the slow is free');
  });
});
