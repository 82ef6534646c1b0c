import { DAY_MS } from '../../src/lib/time.ts';
import { imeiOf } from '../support/devices.ts';
import { PLACES, placeAt } from '../support/ingest/road.ts';
import { INGEST_TOKEN } from '../support/pod.ts';
import {
  anyPod,
  type Client,
  type CycledKey,
  deviceOf,
  keyOf,
  type Made,
  nameOf,
  oneOf,
  placeOf,
  rest,
  SHARED_AREA,
  SUSPENDED_ACCOUNT,
} from './clients.ts';
import {
  readAccount,
  readArea,
  readDevice,
  readEverywhere,
  readKey,
  readPlace,
  readPositions,
  readShared,
} from './pollers.ts';
import { isAcknowledged, isDoubtful, type MovingArea, type RecordedPoint, type Register } from './record.ts';
import { type Asked, ask, attempt, facts } from './recorder.ts';
import type { SimulatedPod } from './site.ts';
import { movingBody } from './world.ts';

/** Of a device: the checker tries all combinations of batches that were given up. */
const GIVEN_UP_MAX = 6;
const BATCH_MAX = 6;
/** Of a driver who sends one: one batch is so long that it makes more events than the service makes deliveries for at once. */
const [LONG_SHARE, LONG_BATCH] = [0.3, 200];
/** Devices that administrators make begin there. */
const FIRST_MADE = 2_000;
/** Of batches: those after which the pod is asked at once where the devices are. */
const CHECKED_SHARE = 0.3;
/** Of batches: those that come once more after they were acknowledged, as when the answer was lost on its way. */
const AGAIN_SHARE = 0.15;
const STEP_MAX_MS = 25_000;
/** Of a batch: its points are older than some that were sent, as those that a tracker has buffered. */
const LATE_SHARE = 0.1;

/** Sends points of its cars, which go up and down the road. A batch without an answer is sent again, or given up at times. */
export async function drive(client: Client, cars: readonly string[], sendsLongBatch: boolean): Promise<void> {
  const { random } = client;
  const startMs = Date.now() - DAY_MS;
  const sent = new Set<number>();
  /** Where each is, and which way it goes: to an end of the road and back. */
  const ways = new Map(cars.map((imei) => [imei, { place: Math.floor(random() * PLACES), step: 1 }]));
  let clockMs = startMs;
  let givenUp = 0;
  let isLongLeft = sendsLongBatch;
  const pointOf = (isLate: boolean): RecordedPoint => {
    const imei = oneOf(random, cars);
    const way = ways.get(imei) ?? { place: 0, step: 1 };
    const to = way.place + way.step * (Math.floor(random() * 4) - 1);
    const place = Math.min(PLACES - 1, Math.max(0, to));
    if (!isLate) ways.set(imei, { place, step: to === place ? way.step : -way.step });
    let atMs = isLate
      ? startMs + Math.floor(random() * (clockMs - startMs))
      : clockMs + 1 + Math.floor(random() * STEP_MAX_MS);
    while (sent.has(atMs)) atMs++;
    sent.add(atMs);
    clockMs = Math.max(clockMs, atMs);
    return { imei, atMs, place };
  };
  while (!client.isOver()) {
    const isLong: boolean = isLongLeft && random() < LONG_SHARE;
    isLongLeft &&= !isLong;
    const isLate = !isLong && clockMs > startMs && random() < LATE_SHARE;
    const length = isLong ? LONG_BATCH : 1 + Math.floor(random() * BATCH_MAX);
    const points = Array.from({ length }, () => pointOf(isLate));
    const mayGiveUp = () => !isLong && givenUp < GIVEN_UP_MAX && random() < 0.3;
    if (!(await send(client, points, mayGiveUp))) givenUp++;
    await rest(client, 30, 200);
  }
}

/** Sends points of a device that stands still, one after the other, each until it is acknowledged. */
export async function probe(client: Client, { imei, place }: MovingArea): Promise<void> {
  let atMs = Date.now() - DAY_MS;
  while (!client.isOver()) {
    atMs += 1_000;
    await send(client, [{ imei, atMs, place }], () => false);
    await rest(client, 30, 150);
  }
}

/** False: it was given up without an answer. */
async function send(
  client: Client,
  points: readonly RecordedPoint[],
  mayGiveUp: () => boolean,
): Promise<boolean> {
  const batch = client.recorder.nextBatch();
  const body = JSON.stringify(
    points.map(({ imei, atMs, place }) => ({ imei, recorded_at: atMs, ...placeAt(place), speed_kmh: 40 })),
  );
  const sendOnce = async (): Promise<Asked> => {
    const headers = { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN };
    const pod = anyPod(client);
    const asked = await ask(pod, 'ingest', '/positions', { method: 'POST', headers, body });
    const rejected = isAcknowledged(asked)
      ? asked.body.data.rejected.map(({ index }: { index: number }) => index)
      : [];
    client.recorder.add({ kind: 'points', ...facts(asked), batch, points, rejected });
    if (isAcknowledged(asked) && client.random() < CHECKED_SHARE)
      client.recorder.add(await readPositions(client, () => 'devices?limit=200')(pod));
    return asked;
  };
  for (;;) {
    const asked = await sendOnce();
    if (isAcknowledged(asked) && client.random() < AGAIN_SHARE) await sendOnce();
    if (!isDoubtful(asked)) return true;
    if (mayGiveUp() || client.isAbandoned()) return false;
    await rest(client, 20, 100);
  }
}

/** What a pod asks Postgres takes so much longer each way: more than it takes to see the answer to a write and to poll. */
const LATE_MS = 200;

/**
 * Does a write and, if it is acknowledged, looks at it on all pods. While late writes are wanted there is one write at a time, and
 * one of the pods, not the one that writes, hears of it late: then nothing but the versions in Redis keeps it from answering with
 * what was before. That is so only before the first fault: what a pod may answer that loses Redis as well is another question.
 */
async function writeAndLook(
  { site, random, late }: Client,
  writer: SimulatedPod | null,
  write: () => Promise<boolean>,
  look: () => Promise<void>,
): Promise<void> {
  const { postgres } = oneOf(
    random,
    site.pods.filter((pod) => pod !== writer),
  ).lines;
  const run = async (): Promise<void> => {
    const isLate = late.left > 0;
    if (isLate) postgres.delayMs = LATE_MS;
    if (await write()) {
      await look();
      if (isLate) late.left--;
    }
    if (isLate) postgres.delayMs = 0;
  };
  if (late.left === 0) return run();
  late.ended = late.ended.then(run);
  await late.ended;
}

/** Moves an area along the road, and names it anew each time. */
export async function moveArea(client: Client, { id }: MovingArea): Promise<void> {
  for (let n = 1; !client.isOver(); n++) {
    const place = Math.floor(client.random() * PLACES);
    const sets = [
      { register: placeOf(id), value: String(place) },
      { register: nameOf(id), value: `v${n}` },
    ];
    const pod = anyPod(client);
    const read = (client.random() < 0.5 ? readArea : readPlace)(client, () => id);
    const write = async (): Promise<boolean> => {
      const asked = await ask(pod, 'api', `/api/v3/areas/${id}`, {
        method: 'PATCH',
        headers: { 'Content-Type': 'application/json', 'X-API-Key': client.world.keys.owner },
        body: JSON.stringify(movingBody(place, `v${n}`)),
      });
      client.recorder.add({ kind: 'write', ...facts(asked), sets });
      return isAcknowledged(asked);
    };
    await writeAndLook(client, pod, write, () => readEverywhere(client, read));
    await rest(client, 50, 400);
  }
}

/** Makes and revokes keys, shares an area and takes it back, suspends an account and lets it in again, makes devices. */
export async function administer(client: Client, made: Made): Promise<void> {
  const { site, world, random } = client;
  const { admin } = site;
  let isShared = false;
  let isActive = true;
  const open: CycledKey[] = [];
  const write = async <T>(
    what: string,
    work: () => Promise<T>,
    set: (made: T | null) => Register | null,
    read: (made: T | null) => ReturnType<typeof readAccount>,
  ): Promise<T | null> => {
    let made: T | null = null;
    const run = async (): Promise<boolean> => {
      const { value, ...asked } = await attempt(what, work);
      const written = set(value);
      if (written === null) return false;
      made = value;
      client.recorder.add({ kind: 'write', ...facts(asked), sets: [written] });
      return isAcknowledged(asked);
    };
    await writeAndLook(client, null, run, () => readEverywhere(client, read(made)));
    return made;
  };
  const run = async (
    set: Register,
    read: ReturnType<typeof readAccount>,
    ...argv: readonly string[]
  ): Promise<void> => {
    await write(
      `fleet ${argv[0]}`,
      () => admin.run(...argv),
      () => set,
      () => read,
    );
  };
  const acts: (() => Promise<void>)[] = [
    async () => {
      const key = await write(
        'fleet key:create',
        () => admin.key(world.ownerEmail),
        (made) => made && { register: keyOf(made), value: 'active' },
        (made) => readKey(client, made ?? undefined),
      );
      if (key === null) return;
      made.keys.push(key);
      open.push(key);
    },
    async () => {
      const key = open.shift();
      if (key === undefined) return;
      await run(
        { register: keyOf(key), value: 'revoked' },
        readKey(client, key),
        'key:revoke',
        '--id',
        String(key.id),
      );
    },
    async () => {
      isShared = !isShared;
      const set = { register: SHARED_AREA, value: isShared ? 'shared' : 'private' };
      const command = isShared ? 'area:share' : 'area:unshare';
      await run(set, readShared(client), command, '--id', String(world.sharedAreaId));
    },
    async () => {
      isActive = !isActive;
      const set = { register: SUSPENDED_ACCOUNT, value: isActive ? 'active' : 'inactive' };
      const command = isActive ? 'account:activate' : 'account:deactivate';
      await run(set, readAccount(client), command, '--email', world.suspendedEmail);
    },
    async () => {
      const imei = imeiOf(FIRST_MADE + made.imeis.length);
      made.imeis.push(imei);
      const set = { register: deviceOf(imei), value: 'known' };
      await run(set, readDevice(client, imei), 'device:create', '--email', world.ownerEmail, '--imei', imei);
    },
  ];
  while (!client.isOver()) {
    await oneOf(random, acts)();
    await rest(client, 50, 400);
  }
}
