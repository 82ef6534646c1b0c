import type { Fleet } from '../devices/fleet.memory.ts';
import {
  type Direction,
  deviceEventData,
  deviceEventMessage,
  type EventType,
  geofenceEventData,
  geofenceEventMessage,
} from '../events/fleetEvent.ts';
import { invariant } from '../lib/errors.ts';
import { arrayLiteral, type Tx } from '../postgres/sql.ts';
import { type Arrival, endArrivedShares } from '../shares/shares.sql.ts';
import type { Span } from '../traces/span.ts';
import type { Traces } from '../traces/traces.ts';
import { insertDeliveries, type NewDelivery } from '../webhooks/delivery/claims.sql.ts';
import type { OutboxEvent, OutboxRow } from '../webhooks/delivery/outbox.sql.ts';
import { insertOutbox, selectReceivers } from '../webhooks/delivery/outbox.sql.ts';
import {
  fleetEventBody,
  fleetEventWebhookId,
  type WebhookType,
  webhookTypeOf,
} from '../webhooks/delivery.ts';
import type { GeofenceEventAt, IngestMemory } from './evaluateFixes.ts';
import type { DeviceEventAt } from './fix.ts';
import type { LockedState } from './points.sql.ts';

/** An event about to be stored, in the world that may read it. `data` is as on the wire. */
export interface NewFleetEvent {
  readonly worldId: number;
  readonly deviceId: number;
  readonly imei: string;
  readonly type: EventType;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly occurredAtMs: number;
  /** That of its point; null: it is not traced. */
  readonly span?: Span | null;
  /** Only geofence events have it. */
  readonly area?: { readonly id: number; readonly direction: Direction };
}

/**
 * The events of a batch as they are stored, in the order of production: by device, then time; for one point the events
 * of the device itself first, then exits, then entries. Each is made when it is asked for, because thousands of them
 * are stored a few at a time.
 */
export function* fixEvents(
  fleet: Fleet,
  deviceEvents: readonly DeviceEventAt[],
  geofenceEvents: readonly GeofenceEventAt[],
  locked: ReadonlyMap<number, Pick<LockedState, 'worldId'>>,
): Generator<NewFleetEvent, void, undefined> {
  const events = [
    ...deviceEvents,
    ...geofenceEvents.map(({ point, event }) => ({ point, occurredAtMs: event.occurredAtMs, event })),
  ];
  // Both lists are in the order of the points already, and sorting keeps the order of equals.
  events.sort((a, b) => a.point.deviceId - b.point.deviceId || a.occurredAtMs - b.occurredAtMs);
  for (const { point, occurredAtMs, event } of events) {
    const { deviceId, span = null } = point;
    const { imei } = point.fix;
    const fields = fleet.anyDevice(imei)?.fields;
    const label = fields?.name ?? fields?.plate ?? imei;
    const common = { deviceId, imei, occurredAtMs, span };
    if ('areaId' in event) {
      const { worldId, areaId: id, direction } = event;
      const [message, data] = [geofenceEventMessage(event, label), geofenceEventData(event)];
      yield { ...common, worldId, type: 'geofence', message, data, area: { id, direction } };
    } else {
      const { worldId } = locked.get(deviceId) as Pick<LockedState, 'worldId'>;
      const [message, data] = [deviceEventMessage(event, label), deviceEventData(event)];
      yield { ...common, worldId, type: event.type, message, data };
    }
  }
}

/** Events that are made, written as JSON and sent to Postgres in one go: some three milliseconds of work. */
const SLICE_EVENTS = 250;

/** Deliveries that a transaction makes itself, for they are sent the sooner; more than that come after its commit. */
const AT_ONCE_MAX = 500;

export interface StoredEvents {
  readonly eventCount: number;
  /** How many deliveries were made at once, by webhook endpoint. */
  readonly queuedFor: ReadonlyMap<number, number>;
  /** True when deliveries wait in the outbox to be made. */
  readonly isOutboxFilled: boolean;
}

/**
 * Stores events with what their receivers get of them, in the transaction of their points. A point may be inside
 * thousands of areas, so others get a turn between two slices.
 */
export async function storeEvents(
  tx: Tx,
  ports: OutboxPorts,
  deviceEvents: readonly DeviceEventAt[],
  geofenceEvents: readonly GeofenceEventAt[],
  locked: ReadonlyMap<number, Pick<LockedState, 'worldId'>>,
  nowMs: number,
): Promise<StoredEvents> {
  const events = fixEvents(ports.memory.fleet, deviceEvents, geofenceEvents, locked);
  const queuedFor = new Map<number, number>();
  let eventCount = 0;
  let atOnce = AT_ONCE_MAX;
  let isOutboxFilled = false;
  const arrivals: Arrival[] = [];
  for (let slice = take(events, SLICE_EVENTS); slice.length > 0; slice = take(events, SLICE_EVENTS)) {
    const ids = await insertFleetEvents(tx, slice);
    arrivals.push(...arrivalsOf(slice));
    const queued = await queueDeliveries(tx, ports, slice, ids, nowMs, atOnce);
    for (const [webhookId, made] of queued.made) {
      queuedFor.set(webhookId, (queuedFor.get(webhookId) ?? 0) + made);
      atOnce -= made;
    }
    isOutboxFilled ||= queued.isOutboxFilled;
    eventCount += slice.length;
  }
  // All at once: shares that were locked slice by slice would be locked in no order.
  if (arrivals.length > 0) await endArrivedShares(tx, arrivals);
  return { eventCount, queuedFor, isOutboxFilled };
}

function arrivalsOf(events: readonly NewFleetEvent[]): Arrival[] {
  return events.flatMap(({ deviceId, area }) =>
    area?.direction === 'entry' ? [{ areaId: area.id, deviceId }] : [],
  );
}

/** Stores events and returns their ids, which rise in the order given. */
export async function insertFleetEvents(tx: Tx, events: readonly NewFleetEvent[]): Promise<number[]> {
  if (events.length === 0) return [];
  const rows = await tx<{ id: number }[]>`
    insert into fleet_event
      (world_id, device_id, device_imei, type, message, data, occurred_at, area_id, direction)
    select world_id, device_id, imei, type, message, data::jsonb, to_timestamp(occurred / 1000), area, direction
    from unnest(
      ${arrayLiteral(events.map((e) => e.worldId))}::bigint[], ${arrayLiteral(events.map((e) => e.deviceId))}::bigint[],
      ${events.map((e) => e.imei)}::text[], ${events.map((e) => e.type)}::text[],
      ${events.map((e) => e.message)}::text[], ${events.map((e) => JSON.stringify(e.data))}::text[],
      ${arrayLiteral(events.map((e) => e.occurredAtMs))}::float8[],
      ${arrayLiteral(events.map((e) => e.area?.id ?? null))}::bigint[],
      ${events.map((e) => e.area?.direction ?? null)}::text[]
    ) with ordinality as e (world_id, device_id, imei, type, message, data, occurred, area, direction, n)
    order by n returning id`;
  return rows.map((row) => row.id);
}

function take<T>(items: Iterator<T, void>, count: number): T[] {
  const taken: T[] = [];
  while (taken.length < count) {
    const next = items.next();
    if (next.done === true) break;
    taken.push(next.value);
  }
  return taken;
}

interface OutboxPorts {
  readonly traces: Pick<Traces, 'noteEvent'> | null;
  readonly memory: IngestMemory;
  /** What ids of webhook events are made from, of the server that the transaction is on. */
  readonly server: { readonly eventScope: string | null };
}

/** What was done about the deliveries of some events. */
export interface Queued {
  /** How many deliveries were made at once, by endpoint. */
  readonly made: ReadonlyMap<number, number>;
  /** True when some wait in the outbox to be made. */
  readonly isOutboxFilled: boolean;
}

/** An event with the endpoints that memory knows for it; events with the same receivers share the very list. */
interface Message extends OutboxEvent {
  readonly receivers: readonly number[];
}

const NOTHING: Queued = { made: new Map(), isOutboxFilled: false };

/**
 * Queues the deliveries of stored events in their transaction: one for each endpoint whose owner may read the event
 * and asked for its type. The body is written once, here. Up to `atOnce` deliveries are made at once; more than that
 * wait in the outbox, and so do those of accounts that have something there already.
 *
 * So the events of one device reach every endpoint in the order of production: this transaction holds the device's
 * lock, so all that its earlier points have left in the outbox is committed and seen; and the outbox keeps its order.
 */
export async function queueDeliveries(
  tx: Tx,
  ports: OutboxPorts,
  events: readonly NewFleetEvent[],
  eventIds: readonly number[],
  nowMs: number,
  atOnce: number,
): Promise<Queued> {
  if (ports.memory.subscriptions.size === 0) return NOTHING;
  const messages = messagesOf(ports, events, eventIds, nowMs);
  const count = messages.reduce((sum, { receivers }) => sum + receivers.length, 0);
  if (count === 0) return NOTHING;
  if (count > atOnce) return { ...NOTHING, isOutboxFilled: await fillOutbox(tx, messages, new Set()) };

  const deliveries = messages.flatMap(({ eventId, type, body, receivers }) =>
    receivers.map((webhookId): NewDelivery => ({ webhookId, eventId, eventType: type, body })),
  );
  const queued = await insertDeliveries(tx, deliveries, 'new_events');
  const made = new Map<number, number>();
  for (const { webhook_id: id } of queued) made.set(id, (made.get(id) ?? 0) + 1);
  // Of one endpoint all are made or none.
  const isOutboxFilled = queued.length < count && (await fillOutbox(tx, messages, new Set(made.keys())));
  return { made, isOutboxFilled };
}

function messagesOf(
  { memory: { fleet, tenancy, subscriptions }, server, traces }: OutboxPorts,
  events: readonly NewFleetEvent[],
  eventIds: readonly number[],
  nowMs: number,
): Message[] {
  const { eventScope } = server;
  invariant(eventScope !== null, 'the connection of the transaction has entered its server');
  const known = new Map<string, readonly number[]>();
  const receiversOf = (worldId: number, type: WebhookType): readonly number[] => {
    const key = `${worldId} ${type}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const readers = tenancy.isShared(worldId) ? tenancy.watchersOf(worldId) : [worldId];
    const receivers = subscriptions.receivers(readers, type);
    const content = receivers.join();
    const shared = known.get(content) ?? receivers;
    known.set(content, shared).set(key, shared);
    return shared;
  };
  const messages: Message[] = [];
  events.forEach((event, n) => {
    const type = webhookTypeOf(event.type, event.area?.direction ?? null);
    const receivers = receiversOf(event.worldId, type);
    if (receivers.length === 0) return;
    const fleetEventId = eventIds[n] as number;
    const eventId = fleetEventWebhookId(eventScope, fleetEventId);
    if (event.span) traces?.noteEvent(eventId, event.span, event.worldId);
    const device = fleet.anyDevice(event.imei)?.fields;
    const body = fleetEventBody({
      id: eventId,
      type,
      createdAtMs: nowMs,
      fleetEventId,
      occurredAtMs: event.occurredAtMs,
      device: { imei: event.imei, name: device?.name ?? null, plate: device?.plate ?? null },
      data: event.data,
    });
    messages.push({ eventId, type, body, receivers });
  });
  return messages;
}

/** Leaves what the endpoints that are not `reached` receive; false when, by Postgres, they receive nothing. */
async function fillOutbox(
  tx: Tx,
  messages: readonly Message[],
  reached: ReadonlySet<number>,
): Promise<boolean> {
  const lists = new Set(messages.map(({ receivers }) => receivers));
  const lacking = [...new Set([...lists].flat())].filter((webhookId) => !reached.has(webhookId));
  const shares = sharesOf(messages, await selectReceivers(tx, lacking));
  await insertOutbox(tx, messages, shares);
  return shares.length > 0;
}

/** What each account receives: events that follow each other and go to the same endpoints of it make one share. */
function sharesOf(messages: readonly Message[], accountOf: ReadonlyMap<number, number>): OutboxRow[] {
  const shares: (OutboxRow & { readonly ordinals: number[] })[] = [];
  const latest = new Map<number, (typeof shares)[number]>();
  const splits = new Map<readonly number[], Map<number, number[]>>();
  messages.forEach(({ receivers }, n) => {
    const split = splits.get(receivers) ?? byAccount(receivers, accountOf);
    splits.set(receivers, split);
    for (const [accountId, webhookIds] of split) {
      const share = latest.get(accountId);
      if (share?.webhookIds === webhookIds) {
        share.ordinals.push(n + 1);
        continue;
      }
      const next = { accountId, ordinals: [n + 1], webhookIds };
      latest.set(accountId, next);
      shares.push(next);
    }
  });
  return shares;
}

function byAccount(
  webhookIds: readonly number[],
  accountOf: ReadonlyMap<number, number>,
): Map<number, number[]> {
  const split = new Map<number, number[]>();
  for (const webhookId of webhookIds) {
    const accountId = accountOf.get(webhookId);
    if (accountId === undefined) continue;
    const own = split.get(accountId);
    if (own === undefined) split.set(accountId, [webhookId]);
    else own.push(webhookId);
  }
  return split;
}
