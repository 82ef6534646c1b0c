import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatIso } from '../../src/lib/time.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { identifier, RawSql } from '../../src/postgres/sqlText.ts';
import { deliverEndpoint } from '../../src/webhooks/delivery/deliverEndpoint.ts';
import { selectDueEndpoints } from '../../src/webhooks/delivery/dueEndpoints.sql.ts';
import type { SendResult } from '../../src/webhooks/delivery/sendWebhook.ts';
import { ANSWERED, claimEndpoint, startDeliveryDatabase } from '../support/webhooks/deliveryDatabase.ts';

const TURN = 25;
const AT_MS = Date.UTC(2026, 2, 2, 9);

describe('a turn of an endpoint', () => {
  test('sends what is due one at a time, and gives way to others after a while', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    const queued = await database.queue(id, TURN + 2);
    const sent: string[] = [];
    let inFlight = 0;
    const ports = database.ports(async ({ headers }) => {
      assert.equal(++inFlight, 1);
      sent.push(headers['X-Service-Delivery-Id'] ?? '');
      await new Promise((resolve) => setImmediate(resolve));
      inFlight--;
      return ANSWERED;
    });
    assert.equal(await deliverEndpoint(ports, id), 0);
    assert.equal(sent.length, TURN);
    assert.equal(await deliverEndpoint(ports, id), null);
    assert.deepEqual(sent.toSorted(), queued.toSorted());
    assert.ok(await claimEndpoint(database.sql, id), 'the lease was given back');
  });

  test('comes again when the next attempt is due; never to an endpoint that is gone; soon to one that is busy', async (t) => {
    const database = await startDeliveryDatabase(t);
    const ports = database.ports(async () => ({
      kind: 'answered',
      statusCode: 500,
      answer: '',
      durationMs: 1,
    }));
    const id = await database.endpoint();
    await database.queue(id);
    const inMs = (await deliverEndpoint(ports, id)) ?? 0;
    assert.ok(inMs > 100_000 && inMs <= 120_000);
    assert.equal(await deliverEndpoint(ports, 99_999), null);
    const busy = await database.endpoint();
    await database.queue(busy);
    await claimEndpoint(database.sql, busy);
    assert.equal(await deliverEndpoint(ports, busy), null, 'nothing waits there');
    await database.queue(busy);
    assert.equal(await deliverEndpoint(ports, busy), 100);
    assert.deepEqual(ports.outcomes, ['failed']);
  });

  test('a result is written also when Postgres could not take it at first', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint({ retry_policy: 'none' });
    await database.queue(id);
    const harm = openSql(database.url, { maxConnections: 1, name: 'test harm' });
    t.after(() => harm.end());
    const name = identifier(new URL(database.url).pathname.slice(1));
    // Every session of the worker is replaced by one that may not, or may, write.
    const makeReadOnly = async (mode: 'on' | 'off') => {
      await harm`alter database ${name} set default_transaction_read_only = ${new RawSql(mode)}`;
      await harm`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`;
    };
    let healed: Promise<void> | null = null;
    const ports = database.ports(async () => {
      await makeReadOnly('on');
      healed = sleep(100).then(() => makeReadOnly('off'));
      return ANSWERED;
    });
    await deliverEndpoint(ports, id);
    await healed;
    const rows = await harm`select status, attempt_token from webhook_delivery`;
    assert.deepEqual([...rows], [{ status: 'delivered', attempt_token: null }]);
  });

  test('the only attempt of a delivery is begun again when its process stalled until it was too late to send', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint({ retry_policy: 'none' });
    await database.queue(id);
    const results: SendResult[] = [{ kind: 'unsent' }, ANSWERED];
    const ports = database.ports(async () => results.shift() ?? assert.fail());
    assert.equal(await deliverEndpoint(ports, id), 0, 'due again at once');
    await deliverEndpoint(ports, id);
    assert.deepEqual(ports.outcomes, ['interrupted', 'delivered']);
    assert.equal(results.length, 0);
  });

  test('a process that slept after an attempt was counted does not send it, and leaves it to be spoken for at once', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    await database.queue(id, 2);
    let nowMs = 0;
    const clock = t.mock.method(performance, 'now', () => {
      nowMs += 11_000;
      return nowMs;
    });
    const ports = database.ports(async () => ANSWERED);
    assert.equal(await deliverEndpoint(ports, id), 0);
    assert.deepEqual(ports.outcomes, []);
    clock.mock.restore();
    const schedule = (await selectDueEndpoints(database.sql, 0, 10)).endpoints.map(
      ({ webhookId }) => webhookId,
    );
    assert.deepEqual(schedule, [id], 'found by a sweep, should the wake-up be lost');
    await deliverEndpoint(ports, id);
    assert.deepEqual(ports.outcomes, ['interrupted', 'delivered']);
  });

  test("no request may leave once its lease could be another's", async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    await database.queue(id, 2);
    let nowMs = 0;
    t.mock.method(performance, 'now', () => nowMs);
    const untilMs: (number | undefined)[] = [];
    const ports = database.ports(async ({ sendUntilMs }) => {
      untilMs.push(sendUntilMs);
      nowMs += 1_000;
      return ANSWERED;
    });
    await deliverEndpoint(ports, id);
    assert.deepEqual(untilMs, [20_000, 21_000], '20 s after each was asked for; a lease has 25 s left then');
  });

  test('ends its turn when a slow receiver has had its time', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    await database.queue(id, 3);
    let nowMs = 0;
    t.mock.method(performance, 'now', () => nowMs);
    let sent = 0;
    const ports = database.ports(async () => {
      sent++;
      nowMs += 1_500;
      return ANSWERED;
    });
    assert.equal(await deliverEndpoint(ports, id), 0);
    assert.equal(sent, 2);
  });

  const RESULTS: readonly [SendResult, status: string, error: string | null][] = [
    [ANSWERED, 'delivered', null],
    [{ kind: 'answered', statusCode: 503, answer: 'later', durationMs: 5 }, 'failed', 'http_503'],
    [{ kind: 'failed', error: 'timeout', durationMs: 10_000 }, 'failed', 'timeout'],
    [{ kind: 'failed', error: 'dns_not_found', durationMs: 3 }, 'failed', 'dns_not_found'],
    [{ kind: 'unsafe' }, 'failed', 'url_unsafe'],
  ];
  test('writes what came of each attempt', async (t) => {
    const database = await startDeliveryDatabase(t);
    for (const [result, status, error] of RESULTS) {
      const id = await database.endpoint();
      await database.queue(id);
      await deliverEndpoint({ ...database.ports(async () => result), clock: () => AT_MS }, id);
      const [row] = await database.sql<{ isRetried: boolean }[]>`
        select status, last_error, last_duration_ms, next_attempt_at is not null as "isRetried",
          to_json(attempt_log) as log
        from webhook_delivery where webhook_id = ${id}`;
      const durationMs = 'durationMs' in result ? result.durationMs : null;
      const isRetried = status === 'failed' && result.kind !== 'unsafe';
      const answered =
        result.kind === 'answered'
          ? { status_code: result.statusCode, answer: result.answer }
          : { status_code: null, answer: null };
      const record = { attempt: 1, at: formatIso(AT_MS), ...answered, error, duration_ms: durationMs };
      assert.deepEqual(row, {
        status,
        last_error: error,
        last_duration_ms: durationMs,
        isRetried,
        log: [record],
      });
    }
  });

  test('what is kept of an attempt that its process did not end says so, and not when it was made', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    await database.queue(id);
    await claimEndpoint(database.sql, id);
    await database.sql`update webhook set leased_until = clock_timestamp() - interval '1 second'`;
    await deliverEndpoint(
      database.ports(async () => ANSWERED),
      id,
    );
    const [row] = await database.sql<{ log: unknown[] }[]>`
      select to_json(attempt_log) as log from webhook_delivery where webhook_id = ${id}`;
    assert.deepEqual(row?.log, [
      { attempt: 1, at: null, status_code: null, error: 'interrupted', duration_ms: null, answer: null },
    ]);
  });
});
