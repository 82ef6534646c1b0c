import { ClaimBatches } from './flows/delivery/claimBatches.ts';
import { DeliverySlots, SLOT_LIMITS } from './flows/delivery/deliverySlots.ts';
import { DeliveryWorkers } from './flows/delivery/deliveryWorkers.ts';
import { FanOut } from './flows/delivery/fanOut.ts';
import { sendWebhook } from './net/sendWebhook.ts';
import type { Pod } from './pod.ts';
import { OUTBOX_ENTRY } from './queue/deliverySchedule.ts';

/** How the deliveries of a pod are started and woken. */
export interface PodDeliveries {
  /** Wakes the pods that send: these endpoints have deliveries that are due. */
  wake(webhookIds: readonly number[]): void;
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
  const wakeOthers = async (webhookIds: readonly number[]): Promise<void> =>
    coordination.deliveries.addAll(webhookIds.map((webhookId) => ({ webhookId, dueInMs: 0 })));
  if (!pod.config.roles.has('delivery')) {
    return {
      wake: (webhookIds) => void wakeOthers(webhookIds),
      wakeOutbox: () => void wakeOthers([OUTBOX_ENTRY]),
      start: () => undefined,
      endAttempts: () => Promise.resolve(),
      stop: () => Promise.resolve(),
    };
  }
  const wake = (webhookIds: readonly number[]): void =>
    void wakeOthers(webhookIds).then(() => workers.poke());
  const fanOut = new FanOut({
    sql: connections.service,
    log,
    onQueued: wake,
    onWaiting: metrics.observeOutbox,
  });
  const workers = createWorkers(pod, fanOut);
  return {
    wake,
    wakeOutbox: () => fanOut.wake(),
    start: () => {
      workers.start();
      fanOut.start();
    },
    endAttempts: () => workers.endAttempts(),
    stop: () => Promise.all([workers.stop(), fanOut.stop()]),
  };
}

function createWorkers(pod: Pod, fanOut: FanOut): DeliveryWorkers {
  const { config, connections, coordination, metrics } = pod;
  return new DeliveryWorkers({
    sql: connections.delivery,
    claims: new ClaimBatches(connections.delivery),
    slots: new DeliverySlots(SLOT_LIMITS),
    clock: pod.clock,
    secretsKey: pod.secretsKey,
    allowNets: config.webhookAllowNets,
    minuteMs: config.webhookMinuteMs,
    schedule: coordination.deliveries,
    send: sendWebhook,
    log: pod.log,
    onAttempt: metrics.countAttempt,
    onSweep: metrics.observeSweep,
    onOutboxFilled: () => fanOut.wake(),
  });
}
