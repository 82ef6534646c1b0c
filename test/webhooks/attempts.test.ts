import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Sql, Tx } from '../../src/postgres/sql.ts';
import {
  type Attempt,
  CLAIM,
  type Claim,
  type Claimed,
  claimDeliveries,
  completeAttempt,
  type EndedAttempt,
  type Lease,
  releaseLease,
  selectInterrupted,
} from '../../src/webhooks/delivery/claims.sql.ts';
import { claimInBatches } from '../../src/webhooks/delivery/deliverEndpoint.ts';
import { deleteWebhook } from '../../src/webhooks/webhooks.sql.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { meetLossyServer } from '../support/postgres/lossyServer.ts';
import {
  claimEndpoint,
  type DeliveryDatabase,
  LEASE_SECONDS,
  leaseOf,
  startDeliveryDatabase,
} from '../support/webhooks/deliveryDatabase.ts';

const DELIVERED = { status: 'delivered', nextAttemptDelayMs: null } as const;
const FAILED = { status: 'failed', nextAttemptDelayMs: 120_000 } as const;
const RECORD = {
  attempt: 1,
  at: '2026-03-02T09:00:00.000Z',
  status_code: 200,
  error: null,
  duration_ms: 7,
  answer: 'ok',
};

const delivered = (attempt: EndedAttempt['attempt']): EndedAttempt => ({
  attempt,
  transition: DELIVERED,
  record: RECORD,
});

/** Goes on with one endpoint, whose rows nobody has locked; undefined: the lease is lost. */
async function advance(
  sql: Sql,
  lease: Lease,
  ended: EndedAttempt | null,
  mayStart: boolean,
): Promise<Pick<Claimed, 'written' | 'next'> | undefined> {
  const [claimed] = await claimDeliveries(sql, [{ webhookId: lease.webhookId, lease, ended, mayStart }]);
  assert.ok(claimed !== 'busy');
  if (claimed === undefined) return undefined;
  assert.deepEqual([claimed.lease, claimed.hasInterrupted], [lease, false]);
  return { written: claimed.written, next: claimed.next };
}
/** The same with a lease that is not lost. */
async function goOn(...args: Parameters<typeof advance>): Promise<Pick<Claimed, 'written' | 'next'>> {
  const claimed = await advance(...args);
  assert.ok(claimed);
  return claimed;
}

/** Claims an endpoint with something due. */
async function open({ sql }: DeliveryDatabase, id: number): Promise<{ lease: Lease; attempt: Attempt }> {
  const opened = await claimEndpoint(sql, id);
  assert.ok(opened?.next.attempt);
  return { lease: opened.lease, attempt: opened.next.attempt };
}
const expire = ({ sql }: DeliveryDatabase, id: number) =>
  sql`update webhook set leased_until = clock_timestamp() - interval '1 second' where id = ${id}`;
const leaseSeconds = async ({ sql }: DeliveryDatabase, id: number): Promise<number | null> => {
  const [row] = await sql<{ left: number | null }[]>`
    select extract(epoch from leased_until - clock_timestamp())::float8 as left from webhook where id = ${id}`;
  return row?.left ?? null;
};

describe('the lease of an endpoint', () => {
  test('of many who open it at once one gets it; tokens rise; what is gone cannot be opened', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    for (let token = 1; token <= 5; token++) {
      await database.queue(id);
      const opened = await Promise.all(Array.from({ length: 8 }, () => claimEndpoint(database.sql, id)));
      const got = opened.filter((each) => each?.next.attempt != null);
      assert.deepEqual(
        got.map((each) => each?.lease),
        [{ webhookId: id, fencingToken: token }],
      );
      const [{ lease, next }] = got as [NonNullable<Awaited<ReturnType<typeof claimEndpoint>>>];
      assert.ok(next.attempt);
      const left = (await leaseSeconds(database, id)) ?? 0;
      assert.ok(left > LEASE_SECONDS - 5 && left <= LEASE_SECONDS);
      const over = await advance(database.sql, lease, delivered(next.attempt), true);
      assert.deepEqual(over, { written: true, next: { attempt: null, dueInMs: null } });
      assert.equal(await leaseSeconds(database, id), null, 'given back');
    }
    assert.equal(await claimEndpoint(database.sql, id + 1), undefined);
  });

  test('who finds the first delivery locked waits for nobody, starts no other before it, and comes again soon', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    const [first = ''] = await database.queue(id, 2);
    const release = await holdTransaction(
      database.sql,
      (tx) => tx`select from webhook_delivery where id = ${first} for update`,
    );
    const opened = await claimEndpoint(database.sql, id);
    assert.deepEqual(opened?.next, { attempt: null, dueInMs: 100 });
    assert.equal(await leaseSeconds(database, id), null, 'given back');
    await release();
    const { attempt } = await open(database, id);
    assert.deepEqual([attempt.deliveryId, attempt.attempt], [first, 1]);
  });

  test('attempts start in the order in which they are due; who may start none gives the lease back', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    const queued = await database.queue(id, 4);
    await database.sql`update webhook_delivery set next_attempt_at = next_attempt_at - interval '1 minute' where id = ${queued[3] ?? ''}`;
    let { lease, attempt } = await open(database, id);
    assert.deepEqual([attempt.attempt, attempt.budgetUsed], [1, 1]);
    const started = [attempt.deliveryId];
    for (const mayStart of [true, true, false]) {
      await database.sql`update webhook set leased_until = clock_timestamp() + interval '1 second' where id = ${id}`;
      const { written, next } = await goOn(database.sql, lease, delivered(attempt), mayStart);
      assert.equal(written, true);
      if (next.attempt === null) {
        assert.deepEqual(next, { attempt: null, dueInMs: 0 });
        assert.equal(await leaseSeconds(database, id), null);
        ({ lease, attempt } = await open(database, id));
      } else {
        assert.ok(((await leaseSeconds(database, id)) ?? 0) > LEASE_SECONDS - 5, 'renewed');
        attempt = next.attempt;
      }
      started.push(attempt.deliveryId);
    }
    assert.deepEqual(started, [queued[3], queued[0], queued[1], queued[2]]);
  });

  test('the wait that ends first is written: that of the attempt just ended, or of another', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    const [first = '', second = ''] = await database.queue(id, 2);
    await database.sql`update webhook_delivery set next_attempt_at = clock_timestamp() + interval '1 hour' where id = ${second}`;
    const retry = async (nextAttemptDelayMs: number) => {
      const { lease, attempt } = await open(database, id);
      assert.equal(attempt.deliveryId, first);
      const ended = { attempt, transition: { ...FAILED, nextAttemptDelayMs }, record: RECORD };
      const { next } = await goOn(database.sql, lease, ended, true);
      assert.equal(next.attempt, null);
      await database.sql`update webhook_delivery set next_attempt_at = clock_timestamp() where id = ${first}`;
      return (next.attempt === null && next.dueInMs) || 0;
    };
    const near = (ms: number, wantedMs: number) => ms > wantedMs - 10_000 && ms <= wantedMs;
    assert.ok(near(await retry(120_000), 120_000));
    assert.ok(near(await retry(7_200_000), 3_600_000));
    await database.sql`delete from webhook_delivery where id = ${second}`;
    assert.ok(near(await retry(7_200_000), 7_200_000));
  });

  test('who lost the lease starts nothing, settles nothing, and releases nothing of the next holder', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    const id = await database.endpoint();
    const [deliveryId = ''] = await database.queue(id, 2);
    const first = await open(database, id);
    await expire(database, id);
    const second = await claimEndpoint(sql, id);
    assert.deepEqual([second?.hasInterrupted, second?.next.attempt], [true, null]);
    const lease = second?.lease as Lease;
    const snapshot = async () => [
      await sql`select * from webhook_delivery order by id`,
      await sql`select * from webhook`,
    ];
    const before = await snapshot();
    for (const ended of [delivered(first.attempt), null]) {
      const late = await advance(sql, first.lease, ended, true);
      assert.equal(late, undefined);
    }
    await releaseLease(sql, first.lease);
    assert.equal(await claimEndpoint(sql, id), undefined, 'the second still has it');
    assert.deepEqual(await snapshot(), before);

    const [cutOff] = await selectInterrupted(sql, lease);
    assert.deepEqual([cutOff?.deliveryId, cutOff?.attempt, cutOff?.budgetUsed], [deliveryId, 1, 1]);
    const ended = { attempt: first.attempt, transition: FAILED, record: RECORD };
    assert.equal(await completeAttempt(sql, { interruptedBefore: lease }, ended), true);
    assert.equal(await completeAttempt(sql, { startedUnder: first.lease }, ended), false);
    await sql`update webhook_delivery set next_attempt_at = clock_timestamp() - interval '1 hour' where id = ${deliveryId}`;
    const { next } = await goOn(sql, lease, null, true);
    assert.deepEqual([next.attempt?.deliveryId, next.attempt?.attempt], [deliveryId, 2]);
    const again = delivered(next.attempt as Attempt);
    assert.equal(await advance(sql, first.lease, again, true), undefined);
    assert.equal(await completeAttempt(sql, { startedUnder: first.lease }, again), false);
    assert.deepEqual(await selectInterrupted(sql, lease), [], 'its own attempt is not cut off');
    assert.equal((await goOn(sql, lease, again, false)).written, true);
    assert.equal((await goOn(sql, lease, again, false)).written, false, 'once');
  });

  test('a lease that a promoted replica lacks is no lease of the next holder', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    const id = await database.endpoint();
    const [deliveryId = ''] = await database.queue(id);
    const lost = await open(database, id);
    await sql`update webhook set fencing_token = fencing_token - 1, leased_until = null where id = ${id}`;
    await sql`
      update webhook_delivery set attempt_token = null, attempts = 0, spent = 0, next_attempt_at = clock_timestamp()
      where id = ${deliveryId}`;
    await meetLossyServer(sql);
    const next = await open(database, id);
    assert.equal(next.attempt.deliveryId, deliveryId);
    const late = await advance(sql, lost.lease, delivered(lost.attempt), true);
    assert.equal(late, undefined);
    assert.equal(await completeAttempt(sql, { startedUnder: lost.lease }, delivered(lost.attempt)), false);
    assert.equal((await goOn(sql, next.lease, delivered(next.attempt), false)).written, true);
  });

  test('a lease that has run out starts nothing, and writes what came of its last attempt while nobody else has it', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint();
    await database.queue(id, 2);
    const { lease, attempt } = await open(database, id);
    await expire(database, id);
    const { written, next } = await goOn(database.sql, lease, delivered(attempt), true);
    assert.deepEqual([written, next], [true, { attempt: null, dueInMs: 0 }]);
  });

  test('who deletes the endpoint and who goes on with its deliveries never wait for each other in a circle', async (t) => {
    const database = await startDeliveryDatabase(t);
    for (let round = 0; round < 10; round++) {
      const id = await database.endpoint();
      await database.queue(id, 3);
      const { lease, attempt } = await open(database, id);
      const claim = claimInBatches((claims) => claimDeliveries(database.sql, claims));
      await Promise.all([
        claim({ webhookId: id, lease, ended: delivered(attempt), mayStart: true }),
        database.sql.begin((tx) => deleteWebhook(tx, database.accountId, id)),
      ]);
      assert.equal((await database.sql`select from webhook_delivery where webhook_id = ${id}`).length, 0);
    }
  });

  test('many go on together, each as alone: written, started, given back, fenced and gone in one statement', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    const made = await Promise.all(Array.from({ length: 6 }, () => database.endpoint()));
    const ids = made.sort((a, b) => a - b);
    const [more = 0, last = 0, later = 0, fenced = 0, gone = 0, stopping = 0] = ids;
    for (const id of ids) await database.queue(id, id === more || id === stopping ? 2 : 1);
    const opened = (await claimDeliveries(sql, [99_999, ...ids].map(leaseOf))) as (Claimed | undefined)[];
    assert.deepEqual(
      opened.map((claimed) => claimed?.next.attempt?.attempt),
      [undefined, 1, 1, 1, 1, 1, 1],
    );
    await expire(database, fenced);
    await claimEndpoint(sql, fenced);
    await sql.begin((tx) => deleteWebhook(tx, database.accountId, gone));
    const moves = opened.flatMap((claimed): Claim[] => {
      if (claimed?.next.attempt == null) return [];
      const { lease } = claimed;
      const transition = lease.webhookId === later ? FAILED : DELIVERED;
      const ended = { attempt: claimed.next.attempt, transition, record: RECORD };
      return [{ webhookId: lease.webhookId, lease, ended, mayStart: lease.webhookId !== stopping }];
    });
    const moved = await claimDeliveries(sql, moves.toReversed());
    const written = moved.toReversed().map((claimed) => {
      assert.ok(claimed !== 'busy');
      if (claimed === undefined) return 'lost';
      const { attempt } = claimed.next;
      return [claimed.written, attempt === null ? claimed.next.dueInMs : `attempt ${attempt.attempt}`];
    });
    assert.ok(Number(written[2]?.[1]) > 100_000);
    assert.deepEqual(written, [
      [true, 'attempt 1'],
      [true, null],
      [true, written[2]?.[1]],
      'lost',
      'lost',
      [true, 0],
    ]);
    const leased = await sql<
      { id: number }[]
    >`select id from webhook where leased_until is not null order by id`;
    assert.deepEqual(
      leased.map(({ id }) => id),
      [more, fenced],
    );
    const statuses = await sql<{ webhook_id: number; status: string }[]>`
      select webhook_id, status from webhook_delivery where attempts > 0 order by webhook_id, id`;
    assert.deepEqual(
      statuses.map(({ webhook_id, status }) => `${webhook_id} ${status}`),
      [
        `${more} delivered`,
        `${more} pending`,
        `${last} delivered`,
        `${later} failed`,
        `${fenced} pending`,
        `${stopping} delivered`,
      ],
    );
  });

  for (const [what, lock] of [
    ['its endpoint', (tx: Tx, id: number) => tx`select from webhook where id = ${id} for update`],
    [
      'its delivery',
      (tx: Tx, id: number) => tx`select from webhook_delivery where webhook_id = ${id} for update`,
    ],
  ] as const) {
    test(`an endpoint of which somebody has locked ${what} holds up no other, and waits by itself`, async (t) => {
      const database = await startDeliveryDatabase(t);
      const ids = [await database.endpoint(), await database.endpoint()];
      for (const id of ids) await database.queue(id);
      const opened = (await claimDeliveries(database.sql, ids.map(leaseOf))) as Claimed[];
      const moves = opened.map(({ lease, next }): Claim => {
        return {
          webhookId: lease.webhookId,
          lease,
          ended: delivered(next.attempt as Attempt),
          mayStart: true,
        };
      });
      const release = await holdTransaction(database.sql, (tx) => lock(tx, ids[0] as number));
      const claim = claimInBatches((claims) => claimDeliveries(database.sql, claims));
      const answers = moves.map(claim);
      const [first, second] = answers.map(async (answer) => {
        const { written, next } = (await answer) as Claimed;
        return { written, next };
      });
      assert.deepEqual(await Promise.race([first, second]), {
        written: true,
        next: { attempt: null, dueInMs: null },
      });
      assert.deepEqual((await claimDeliveries(database.sql, moves)).at(0), 'busy');
      await release();
      assert.deepEqual(await first, { written: true, next: { attempt: null, dueInMs: null } });
    });
  }

  test('the last ten attempts of a delivery are kept, however their end was written, each once', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    const id = await database.endpoint();
    const [deliveryId = ''] = await database.queue(id);
    const kept = async () => {
      const [row] = await sql<{ log: unknown[] }[]>`
        select to_json(attempt_log) as log from webhook_delivery where id = ${deliveryId}`;
      return row?.log;
    };
    const records: object[] = [];
    for (let n = 1; n <= 23; n++) {
      const { lease, attempt } = await open(database, id);
      const record = { ...RECORD, attempt: n, answer: `"${n}"\n\\ {}, ü 🚚` };
      const ended = { attempt, transition: { ...FAILED, nextAttemptDelayMs: 0 }, record };
      if (n % 2 === 1) await goOn(sql, lease, ended, false);
      else await completeAttempt(sql, { startedUnder: lease }, ended);
      await releaseLease(sql, lease);
      records.push(record);
      assert.deepEqual(await kept(), records.slice(-10));
      assert.equal(await completeAttempt(sql, { startedUnder: lease }, ended), false);
    }
    assert.deepEqual(await kept(), records.slice(-10));
  });

  test('the claim is one text with eleven parameters that can be pasted into psql', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    const id = await database.endpoint();
    const [deliveryId = ''] = await database.queue(id);
    const rows = await sql.begin(async (tx) => {
      await tx.unsafe(`prepare claim as ${CLAIM}`);
      const nulls = Array.from({ length: 8 }, () => "'{null}'").join(', ');
      return tx.unsafe<{ id: string; token: number; attempts: number; is_busy: boolean }[]>(
        `execute claim ('{${id}}', '{null}', '{true}', ${nulls})`,
      );
    });
    assert.deepEqual(
      rows.map((row) => [row.id, row.token, row.attempts, row.is_busy]),
      [[deliveryId, 1, 1, false]],
    );
  });
});
