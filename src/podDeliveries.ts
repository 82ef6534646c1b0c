import type { Pod } from './pod.ts';
import { OUTBOX_ENTRY } from './redis/deliverySchedule.ts';
import { claimDeliveries } from './webhooks/delivery/claims.sql.ts';
import { claimInBatches } from './webhooks/delivery/deliverEndpoint.ts';
import { DeliverySlots, DeliveryWorkers, SLOT_LIMITS } from './webhooks/delivery/deliveryWorkers.ts';
import { fanOutWork, OUTBOX_POLL_MS } from './webhooks/delivery/fanOut.ts';
import { ReceiverConnections } from './webhooks/delivery/receiverConnections.ts';
import { sendWebhook } from './webhooks/delivery/sendWebhook.ts';
import { BacklogWatch } from './webhooks/pauses/backlogWatch.ts';
import { LEFT_OUT_POLL_MS, leftOutWork } from './webhooks/pauses/makeLeftOut.ts';

/** How the deliveries of a pod are started and woken. */
export interface PodDeliveries {
  /** Wakes the pods that send: these endpoints have deliveries that are due. */
  wake(webhookIds: readonly number[]): void;
  /** The same, and notes how many deliveries were made: endpoints with too many are paused. */
  queued(made: ReadonlyMap<number, number>): void;
  /** Wakes the pods that make deliveries: there are events in the outbox. */
  wakeOutbox(): void;
  start(): void;
  /** Begins no further attempt, and waits for those in flight. */
  endAttempts(): Promise<unknown>;
  /** Waits for the sweep and the fan-out that are still under way. */
  stop(): Promise<unknown>;
}

/** Makes and sends deliveries in a pod with the role `delivery`; other pods only wake those. */
export function createDeliveries(pod: Pod): PodDeliveries {
  const { connections, coordination, metrics, log } = pod;
  const watch = new BacklogWatch({ sql: connections.service, log });
  const wakeOthers = async (webhookIds: readonly number[]): Promise<void> =>
    coordination.deliveries.addAll(webhookIds.map((webhookId) => ({ webhookId, dueInMs: 0 })));
  if (!pod.config.roles.has('delivery')) {
    return {
      wake: (webhookIds) => void wakeOthers(webhookIds),
      queued: (made) => {
        watch.note(made);
        void wakeOthers([...made.keys()]);
      },
      wakeOutbox: () => void wakeOthers([OUTBOX_ENTRY]),
      start: () => undefined,
      endAttempts: () => Promise.resolve(),
      stop: () => watch.stop(),
    };
  }
  const wake = (webhookIds: readonly number[]): void =>
    void wakeOthers(webhookIds).then(() => workers.poke());
  const queued = (made: ReadonlyMap<number, number>): void => {
    watch.note(made);
    wake([...made.keys()]);
  };
  const leftOut = leftOutWork({
    sql: connections.service,
    fleet: pod.memory.fleet,
    log,
    onQueued: queued,
    onPaused: metrics.observePaused,
  });
  const fanOut = fanOutWork({
    sql: connections.service,
    log,
    onQueued: queued,
    onWaiting: metrics.observeOutbox,
  });
  const receivers = new ReceiverConnections();
  const workers = createWorkers(pod, receivers, () => fanOut.wake());
  return {
    wake,
    queued,
    wakeOutbox: () => fanOut.wake(),
    start: () => {
      workers.start();
      fanOut.start(OUTBOX_POLL_MS);
      leftOut.start(LEFT_OUT_POLL_MS);
    },
    endAttempts: () => workers.endAttempts().finally(() => receivers.destroy()),
    stop: () => Promise.all([workers.stop(), fanOut.stop(), leftOut.stop(), watch.stop()]),
  };
}

function createWorkers(
  pod: Pod,
  connections: ReceiverConnections,
  onOutboxFilled: () => void,
): DeliveryWorkers {
  const { config, coordination, metrics } = pod;
  const sql = pod.connections.delivery;
  return new DeliveryWorkers({
    sql,
    claim: claimInBatches((claims) => claimDeliveries(sql, claims)),
    slots: new DeliverySlots(SLOT_LIMITS),
    clock: pod.clock,
    secretsKey: pod.secretsKey,
    allowNets: config.webhookAllowNets,
    minuteMs: config.webhookMinuteMs,
    schedule: coordination.deliveries,
    send: (request) => sendWebhook(connections, request),
    log: pod.log,
    onAttempt: metrics.countAttempt,
    onSweep: metrics.observeSweep,
    onOutboxFilled,
  });
}
