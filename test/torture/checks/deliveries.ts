import type { RecordedDelivery, RestState, Violation } from '../record.ts';

/** Whoever lives leaves after ten seconds; a process that stands still cannot. */
const IN_FLIGHT_MAX_MS = 12_000;
const SENT_MAX = 2;

/**
 * Every endpoint wants every event. Events have their webhooks at least once, under ids that never change. Nothing is promised
 * about the order of events: one that waits for its retry does not delay later ones.
 */
export function checkDeliveries(received: readonly RecordedDelivery[], rest: RestState): Violation[] {
  const endpoints = Map.groupBy(received, ({ endpoint }) => endpoint);
  for (const { endpoint } of rest.deliveries) if (!endpoints.has(endpoint)) endpoints.set(endpoint, []);
  return [...endpoints].flatMap(([endpoint, requests]) => [
    ...checkArrival(endpoint, requests, rest),
    ...checkIds(endpoint, requests),
    ...checkAttempts(endpoint, requests),
    ...checkOneAtATime(endpoint, requests),
  ]);
}

const isTaken = ({ status }: RecordedDelivery): boolean => status !== null && status < 300;

function checkArrival(endpoint: string, requests: readonly RecordedDelivery[], rest: RestState): Violation[] {
  const rule = 'a webhook is delivered at least once';
  const taken = requests.filter(isTaken);
  const events = new Set(taken.map(({ fleetEventId }) => fleetEventId));
  const ids = new Set(taken.map(({ deliveryId }) => deliveryId));
  const stored = rest.deliveries.filter((delivery) => delivery.endpoint === endpoint);
  return [
    ...rest.events
      .filter(({ id }) => !events.has(id))
      .map(({ id }): Violation => ({ rule, message: `event ${id} never came to ${endpoint}` })),
    ...stored
      .filter(({ id, status }) => status === 'delivered' && !ids.has(id))
      .map(
        ({ id }): Violation => ({
          rule,
          message: `${id} is said to be delivered to ${endpoint}, which never took it`,
        }),
      ),
    ...stored
      .filter(({ status }) => status !== 'delivered')
      .map(({ id, status }): Violation => ({ rule, message: `${id} to ${endpoint} ends as ${status}` })),
  ];
}

/** Delivery, event and bytes belong together, one of each at an endpoint. */
function checkIds(endpoint: string, requests: readonly RecordedDelivery[]): Violation[] {
  const rule = 'a delivery keeps its ids and bytes';
  const one = (
    what: string,
    keyOf: (request: RecordedDelivery) => string,
    shownBy: (request: RecordedDelivery) => string,
  ) =>
    [...Map.groupBy(requests, keyOf)].flatMap(([key, all]): Violation[] => {
      const values = new Set(all.map(shownBy));
      if (values.size === 1) return [];
      return [
        {
          rule,
          message: `${key} at ${endpoint} has more than one ${what}: ${[...values].slice(0, 2).join(' and ')}`,
        },
      ];
    });
  return [
    ...one(
      'body',
      ({ deliveryId }) => deliveryId,
      ({ body }) => body,
    ),
    ...one(
      'delivery',
      ({ eventId }) => eventId,
      ({ deliveryId }) => deliveryId,
    ),
    ...one(
      'event',
      ({ deliveryId }) => deliveryId,
      ({ eventId }) => eventId,
    ),
    ...one(
      'event id',
      ({ fleetEventId }) => `fleet event ${fleetEventId}`,
      ({ eventId }) => eventId,
    ),
    ...one(
      'idempotency key',
      ({ eventId }) => eventId,
      ({ idempotencyKey }) => idempotencyKey,
    ),
  ];
}

function checkAttempts(endpoint: string, requests: readonly RecordedDelivery[]): Violation[] {
  return [...Map.groupBy(requests, ({ deliveryId }) => deliveryId)].flatMap(([id, all]): Violation[] => {
    const inOrder = all.toSorted((a, b) => a.beginMs - b.beginMs);
    const numbers = inOrder.map(({ attempt }) => attempt);
    const isRepeated = inOrder.some(({ attempt, timestamp }, n) => {
      const before = inOrder[n - 1];
      return before?.attempt === attempt && before.timestamp !== timestamp;
    });
    // One whose kept connection is closed before the answer is sent once more.
    const isInOrder = numbers.every(
      (number, n) => number >= (numbers[n - 1] ?? 1) && number !== numbers[n - SENT_MAX],
    );
    return isInOrder && !isRepeated
      ? []
      : [
          {
            rule: 'attempts are numbered in order',
            message: `${id} at ${endpoint}: ${inOrder.map(({ attempt, timestamp }) => `${attempt} of ${timestamp}`).join(', ')}`,
          },
        ];
  });
}

function checkOneAtATime(endpoint: string, requests: readonly RecordedDelivery[]): Violation[] {
  const inOrder = requests.toSorted((a, b) => a.beginMs - b.beginMs);
  return inOrder.flatMap((request, n): Violation[] => {
    const before = inOrder[n - 1];
    if (before === undefined) return [];
    if (request.beginMs >= Math.min(before.endMs, before.beginMs + IN_FLIGHT_MAX_MS)) return [];
    return [
      {
        rule: 'an endpoint is asked one at a time',
        message: `${request.deliveryId} reached ${endpoint} at ${Math.round(request.beginMs)} ms, and ${before.deliveryId} was answered at ${Math.round(before.endMs)} ms`,
      },
    ];
  });
}
