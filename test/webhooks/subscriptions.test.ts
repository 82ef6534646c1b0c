import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Subscription, WEBHOOK_TYPES } from '../../src/webhooks/message.ts';
import { type ActiveEndpoint, Subscriptions } from '../../src/webhooks/subscriptions.memory.ts';
import { runs } from '../support/torture.ts';

const type = fc.constantFrom(...WEBHOOK_TYPES);
const endpoint = fc.record({
  id: fc.integer({ min: 1, max: 8 }),
  worldId: fc.integer({ min: 1, max: 3 }),
  events: fc.array(fc.oneof(type, fc.constant<Subscription>('*')), { minLength: 1, maxLength: 3 }),
});
const step = fc.oneof(
  { weight: 5, arbitrary: endpoint.map((put) => ({ put })) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 8 }).map((remove) => ({ remove })) },
  { weight: 1, arbitrary: fc.array(endpoint, { maxLength: 4 }).map((adopt) => ({ adopt })) },
);

test('after any puts and removals of endpoints the receivers are those of a plain list', () => {
  const property = fc.property(
    fc.array(step, { maxLength: 30 }),
    fc.uniqueArray(fc.integer({ min: 1, max: 4 })),
    type,
    (steps, worldIds, wanted) => {
      const subscriptions = new Subscriptions();
      let model: ActiveEndpoint[] = [];
      for (const each of steps) {
        if ('put' in each) {
          subscriptions.put(each.put);
          model = [...model.filter(({ id }) => id !== each.put.id), each.put];
        } else if ('remove' in each) {
          subscriptions.remove(each.remove);
          model = model.filter(({ id }) => id !== each.remove);
        } else {
          const loaded = new Subscriptions();
          for (const one of each.adopt) loaded.put(one);
          subscriptions.adopt(loaded);
          model = each.adopt.filter(
            ({ id }, n) => each.adopt.findLastIndex((other) => other.id === id) === n,
          );
        }
      }
      const expected = model
        .filter(
          ({ worldId, events }) =>
            worldIds.includes(worldId) && events.some((event) => event === '*' || event === wanted),
        )
        .map(({ id }) => id);
      assert.deepEqual(subscriptions.receivers(worldIds, wanted).toSorted(), expected.toSorted());
      assert.equal(subscriptions.size, model.length);
    },
  );
  fc.assert(property, { seed: 1, numRuns: runs(125) });
});
