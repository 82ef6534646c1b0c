import { DAY_MS } from '../../src/lib/time.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';
import { deliveringEnv } from '../support/webhooks/webhookProcesses.ts';
import { EventSource, endpointBody, webhookApi } from '../support/webhooks/webhooks.ts';
import { type Fault, openSite, repeat, type Stage, VANS } from './site.ts';

/** A pod that sends to a receiver, and so many endpoints there that get everything. */
async function openDelivering(stage: Stage, endpoints = 1) {
  const { url } = await createDatabase(stage.t);
  const site = await openSite(stage, url);
  const env = { ...(await deliveringEnv(stage.t, url, 1_000)), ROLES: 'api,ingest,delivery' };
  const [receiver, pod] = [await startReceiver(stage.t), await site.pod(env)];
  const api = webhookApi(pod.api, site.key);
  for (let n = 0; n < endpoints; n++) await api.make(endpointBody(`${receiver.url}/${n}`));
  // A day of events, so that none is older than one that came before.
  const events = new EventSource(VANS[0], Date.now() - DAY_MS);
  return { site, url, env, receiver, pod, emit: (count: number) => events.emit(pod, count) };
}

const inNineSeconds = () => ({ status: 200, after: new Promise((resolve) => setTimeout(resolve, 9_000)) });

/** What happens to deliveries. */
export const WEBHOOK_FAULTS: Readonly<Record<string, Fault>> = {
  FleetWebhooksLate: {
    fault: 'a receiver takes nine seconds for each of forty deliveries',
    prepare: async (stage) => {
      const { receiver, emit } = await openDelivering(stage);
      return {
        cause: async () => {
          receiver.behave(inNineSeconds);
          await emit(40);
        },
        mend: async () => receiver.behave([200]),
      };
    },
  },
  FleetOutboxGrows: {
    fault: 'an index of deliveries is made that locks them, and large transactions of points go on',
    minuteSeconds: 3,
    prepare: async (stage) => {
      // So that 250 events make more deliveries than the transaction of their points makes itself.
      const { url, emit } = await openDelivering(stage, 3);
      const locking = openSql(url, { maxConnections: 1, name: 'test lock' });
      stage.t.after(() => locking.end());
      let [stop, end] = [async (): Promise<void> => undefined, async (): Promise<void> => undefined];
      return {
        cause: async () => {
          end = await holdTransaction(locking, (tx) => tx`lock table webhook_delivery in share mode`);
          stop = repeat(stage.t, () => emit(500), 2_000);
        },
        mend: async () => {
          await stop();
          await end();
        },
      };
    },
  },
  FleetEndpointsPaused: {
    fault: 'a receiver hangs up until more deliveries wait than the plan allows',
    prepare: async (stage) => {
      const { site, receiver, emit } = await openDelivering(stage);
      await site.sql`update plan set max_waiting_per_webhook = 500`;
      return {
        cause: async () => {
          receiver.behave(['reset']);
          for (let n = 0; n < 5; n++) await emit(400);
        },
      };
    },
  },
  FleetDeliveriesFenced: {
    fault: 'a pod is stopped in the middle of a delivery for longer than its lease',
    prepare: async (stage) => {
      const { site, env, receiver, pod, emit } = await openDelivering(stage);
      const answered = Promise.withResolvers<void>();
      return {
        cause: async () => {
          receiver.behave((_, n) => (n === 0 ? { status: 200, after: answered.promise } : 200));
          await emit(1);
          await waitFor(() => receiver.received.length === 1);
          pod.signal('SIGSTOP');
          await site.pod(env);
          await waitFor(() => receiver.received.length === 2);
          answered.resolve();
          pod.signal('SIGCONT');
        },
      };
    },
  },
};
