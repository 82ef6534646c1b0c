import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { KeyUse } from '../src/access/keyUse.ts';
import { type HousekeepingPorts, tidy } from '../src/housekeeping.ts';
import { openSql } from '../src/postgres/sql.ts';
import { type DeliveryPorts, DeliveryWorkers } from '../src/webhooks/delivery/deliveryWorkers.ts';
import { fanOutWork } from '../src/webhooks/delivery/outbox.sql.ts';
import { BacklogWatch } from '../src/webhooks/pauses/backlogWatch.ts';
import { type LeftOutPorts, leftOutWork } from '../src/webhooks/pauses/makeLeftOut.ts';
import { waitFor } from './support/waitFor.ts';

/** Nobody listens there. */
const sql = openSql('postgres://127.0.0.1:1/none', { maxConnections: 2, name: 'test' });
after(() => sql.end());

interface Log {
  info(): void;
  warn(fields: object, message: string): void;
}

/** What works in the background, begun with a log; returns the way to end it. */
type Begin = (log: Log) => () => Promise<unknown>;

const nothing = () => undefined;

const WORKS: Readonly<Record<string, Begin>> = {
  'the last use of keys was not written down': (log) => {
    const use = new KeyUse({ sql, log });
    use.note(1, 0);
    const flushed = use.flush();
    return () => flushed;
  },
  'the outbox cannot be emptied': (log) => {
    const fanOut = fanOutWork({ sql, log, onQueued: nothing, onWaiting: nothing });
    fanOut.wake();
    return () => fanOut.stop();
  },
  'the delivery schedule cannot be rebuilt': (log) => startWorkers(log, []),
  'the accounts of endpoints cannot be read; trying again': (log) => startWorkers(log, [1]),
  'waiting deliveries cannot be counted': (log) => {
    const watch = new BacklogWatch({ sql, log });
    watch.count([1]);
    return () => watch.stop();
  },
  'deliveries that were left out cannot be made': (log) => {
    const leftOut = leftOutWork({ sql, log } as unknown as LeftOutPorts);
    leftOut.wake();
    return () => leftOut.stop();
  },
  'housekeeping failed; trying again in a minute': (log) => {
    const running = tidy({
      sql,
      log,
      clock: Date.now,
      eventRetentionDays: 1,
    } as unknown as HousekeepingPorts);
    return () => running;
  },
};

function startWorkers(log: Log, due: readonly number[]): () => Promise<void> {
  const schedule = { take: async () => due, addAll: async () => undefined };
  const slots = { size: 0 };
  const workers = new DeliveryWorkers({ sql, log, schedule, slots } as unknown as DeliveryPorts);
  workers.start();
  return () => workers.stop();
}

describe('without Postgres the log says why', () => {
  for (const [message, begin] of Object.entries(WORKS)) {
    test(message, async () => {
      const warnings: (readonly [message: string, fields: object])[] = [];
      const end = begin({ info: nothing, warn: (fields, said) => void warnings.push([said, fields]) });
      await waitFor(() => warnings.some(([said]) => said === message));
      await end();
      for (const [said, fields] of warnings)
        assert.deepEqual(fields, { reason: 'unreachable', code: 'ECONNREFUSED' }, said);
    });
  }
});
