import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { imeiOf } from '../support/devices.ts';
import { areaApi } from '../support/http/areas.ts';
import { anyRoadArea, PLACES, type RoadArea } from '../support/ingest/road.ts';
import { type Line, openLine } from '../support/line.ts';
import { podAt } from '../support/pod.ts';
import { type Behaviour, type Received, startReceiver } from '../support/webhooks/receiver.ts';
import { endpointBody, webhookApi } from '../support/webhooks/webhooks.ts';
import { nameOf, placeOf, SHARED_AREA, SUSPENDED_ACCOUNT } from './clients.ts';
import type { MovingArea, RecordedDelivery, RecordedWrite } from './record.ts';
import type { Site } from './site.ts';

const [OWNER, MEMBER, SUSPENDED] = ['owner@example.com', 'member@example.com', 'suspended@example.com'];
const DRIVERS = 2;
const CARS_PER_DRIVER = 3;
const PROBES = 2;
const FIXED_AREAS = 12;
const RADIUS_M = 300;

/** Whom the run is about, and what the clients know of it. */
export interface World {
  readonly ownerEmail: string;
  readonly suspendedEmail: string;
  readonly keys: { readonly owner: string; readonly member: string; readonly suspended: string };
  /** The devices of each driver. */
  readonly cars: readonly (readonly string[])[];
  readonly fixedAreas: readonly { readonly id: number; readonly area: RoadArea }[];
  readonly movingAreas: readonly MovingArea[];
  /** An area that is shared with the member, and not, by turns. */
  readonly sharedAreaId: number;
  readonly endpoints: readonly Endpoint[];
  readonly receivers: Receivers;
  /** What was written so far. */
  readonly writes: readonly RecordedWrite[];
}

export interface Endpoint {
  readonly id: number;
  readonly path: string;
}

/** What an area that moves looks like at a place. */
export const movingBody = (place: number, name: string) => ({
  name,
  type: 'circle',
  radius_m: RADIUS_M,
  center: { lat: 41.9, lng: 12.4 + place * 0.01 },
});

/** The place of such an area, seen from the first place of the road. */
export const placeAtDistance = (distanceM: number): number => Math.round((distanceM + RADIUS_M) / 829);

/** Makes all that is there before the first point. */
export async function makeWorld(t: TestContext, { admin, pods }: Site, random: () => number): Promise<World> {
  const cars = Array.from({ length: DRIVERS }, (_, n) =>
    Array.from({ length: CARS_PER_DRIVER }, (_, k) => imeiOf(100 * (n + 1) + k)),
  );
  const probes = Array.from({ length: PROBES }, (_, n) => imeiOf(900 + n));
  await admin.account(OWNER, { organization: 'Haulage' });
  await admin.account(MEMBER, { organization: 'Haulage' });
  await admin.account(SUSPENDED);
  await admin.importDevices(
    OWNER,
    [...cars.flat(), ...probes].map((imei) => ({ imei })),
  );
  const keyOf = async (email: string): Promise<string> => (await admin.key(email)).key;
  const keys = { owner: await keyOf(OWNER), member: await keyOf(MEMBER), suspended: await keyOf(SUSPENDED) };
  const api = `http://127.0.0.1:${pods[0]?.lines.api.port}`;
  const areas = areaApi(podAt({ api, ingest: '' }), keys.owner);
  const fixedAreas = [];
  for (let n = 0; n < FIXED_AREAS; n++) {
    const area = anyRoadArea(`Fixed ${n}`, random);
    fixedAreas.push({ id: await areas.make(area.body), area });
  }
  const movingAreas: MovingArea[] = [];
  const writes: RecordedWrite[] = [];
  const note = (register: string, value: string): void => {
    const call = {
      what: 'setup',
      beginMs: performance.now(),
      endMs: performance.now(),
      process: null,
      status: 201,
    };
    writes.push({ kind: 'write', ...call, sets: [{ register, value }] });
  };
  for (const imei of probes) {
    const id = await areas.make(movingBody(0, 'v0'));
    movingAreas.push({ id, register: placeOf(id), imei, place: 1 + Math.floor(random() * (PLACES - 1)) });
    note(placeOf(id), '0');
    note(nameOf(id), 'v0');
  }
  const sharedAreaId = await areas.make(movingBody(200, 'Shared'));
  note(SHARED_AREA, 'private');
  note(SUSPENDED_ACCOUNT, 'active');
  const receivers = await startReceivers(t, random);
  const endpoints: Endpoint[] = [];
  for (const [path, rule] of Object.entries(RULES)) {
    const { id } = await webhookApi(api, keys.owner).make(endpointBody(receivers.urlOf(path), rule));
    endpoints.push({ id, path });
  }
  return {
    ownerEmail: OWNER,
    suspendedEmail: SUSPENDED,
    keys,
    cars,
    fixedAreas,
    movingAreas,
    sharedAreaId,
    endpoints,
    receivers,
    writes,
  };
}

const RULES = {
  '/well': { retry_policy: 'exponential', max_retries: 10 },
  '/slow': { retry_policy: 'fixed', max_retries: 10 },
  '/failing': { retry_policy: 'exponential', max_retries: 3 },
};

/** Receivers of webhooks: one that is well, one that is slow and one that fails often, until they are healed. */
export interface Receivers {
  readonly line: Line;
  urlOf(path: string): string;
  /** From now on all are well. */
  heal(): void;
  deliveries(): RecordedDelivery[];
}

async function startReceivers(t: TestContext, random: () => number): Promise<Receivers> {
  const receiver = await startReceiver(t);
  const line = await openLine(t, Number(new URL(receiver.url).port));
  const answers = new Map<Received, Behaviour>();
  let areWell = false;
  const moods: Readonly<Record<string, () => Behaviour>> = {
    '/well': () => 200,
    '/slow': () => ({ status: 200, after: sleep(random() ** 4 * 2_000) }),
    '/failing': () => (random() < 0.5 ? 200 : random() < 0.5 ? 503 : 'reset'),
  };
  for (const path of Object.keys(RULES))
    receiver.behave((delivery) => {
      const behaviour = areWell ? 200 : (moods[path]?.() ?? 200);
      answers.set(delivery, behaviour);
      return behaviour;
    }, path);
  return {
    line,
    urlOf: (path) => `https://127.0.0.1:${line.port}${path}`,
    heal: () => {
      areWell = true;
    },
    deliveries: () => receiver.received.map((delivery) => recorded(delivery, answers.get(delivery) ?? 200)),
  };
}

function recorded(delivery: Received, behaviour: Behaviour): RecordedDelivery {
  const { path, headers, body, connection, atMs, endedAtMs } = delivery;
  const event = JSON.parse(body);
  const status = typeof behaviour === 'object' ? behaviour.status : behaviour;
  return {
    endpoint: path,
    deliveryId: headers['x-service-delivery-id'] ?? '',
    attempt: Number(headers['x-service-delivery-attempt']),
    timestamp: headers['x-service-timestamp'] ?? '',
    connection,
    idempotencyKey: headers['idempotency-key'] ?? '',
    eventId: event.id,
    fleetEventId: event.data.fleet_event_id,
    body,
    beginMs: atMs,
    endMs: endedAtMs,
    status: typeof status === 'number' ? status : null,
  };
}
