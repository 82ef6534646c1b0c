import { PLACES, placeAt } from '../support/ingest/road.ts';
import { UNSET } from './checks/registers.ts';
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
import type { RecordedPositions, RecordedRead, Register } from './record.ts';
import { type Asked, ask, facts } from './recorder.ts';
import type { SimulatedPod } from './site.ts';
import { placeAtDistance } from './world.ts';

/** Of keys and devices: mostly the last ones are asked for. */
const RECENT = 3;

/** Asks any pod, again and again, for what others have written. */
export async function poll(client: Client, made: Made): Promise<void> {
  const { random, recorder, world } = client;
  const recent = <T>(all: readonly T[]): T | undefined =>
    all[all.length - 1 - Math.floor(random() * Math.min(RECENT, all.length))];
  const moving = (): number => oneOf(random, world.movingAreas).id;
  const anyPlace = () => placeAt(Math.floor(random() * PLACES));
  const polls: ((pod: SimulatedPod) => Promise<RecordedRead | RecordedPositions>)[] = [
    readArea(client, moving),
    readPlace(client, moving),
    readContaining(client, anyPlace),
    readAreas(client),
    (pod) => readKey(client, recent(made.keys))(pod),
    (pod) => readDevice(client, recent(made.imeis))(pod),
    readAccount(client),
    readShared(client),
    readPositions(client, () => 'devices?limit=200'),
    readPositions(client, () => {
      const { latitude, longitude } = anyPlace();
      return `devices/nearest?lat=${latitude}&lng=${longitude}&limit=50`;
    }),
    readPositions(client, () => `devices/${oneOf(random, world.cars.flat())}`),
  ];
  while (!client.isOver()) {
    recorder.add(await oneOf(random, polls)(anyPod(client)));
    await rest(client, 5, 60);
  }
}

type Read = (pod: SimulatedPod) => Promise<RecordedRead>;

/** Asks all pods that run at once: what was acknowledged a moment ago must hold on each. */
export async function readEverywhere({ site, recorder }: Client, read: Read): Promise<void> {
  const running = site.pods.filter(({ process, isPaused }) => process !== null && !isPaused);
  await Promise.all(running.map(async (pod) => recorder.add(await read(pod))));
}

export const readArea =
  (client: Client, id: () => number): Read =>
  (pod) => {
    const area = id();
    return read(client, pod, `areas/${area}`, ({ data }) => [
      { register: nameOf(area), value: data.name },
      { register: placeOf(area), value: String(Math.round((data.center.lng - 12.4) / 0.01)) },
    ]);
  };

/** By the distance from the first place of the road. */
export const readPlace =
  (client: Client, id: () => number): Read =>
  (pod) => {
    const area = id();
    const { latitude, longitude } = placeAt(0);
    return read(client, pod, `areas/${area}/contains?lat=${latitude}&lng=${longitude}`, ({ data }) => [
      { register: placeOf(area), value: String(placeAtDistance(data.distance_m)) },
    ]);
  };

const readContaining =
  (client: Client, place: () => ReturnType<typeof placeAt>): Read =>
  (pod) => {
    const { latitude, longitude } = place();
    return read(client, pod, `areas/containing?lat=${latitude}&lng=${longitude}`, ({ data }) =>
      namesIn(
        client,
        data.map(({ area }: { area: { id: number; name: string } }) => area),
      ),
    );
  };

const readAreas =
  (client: Client): Read =>
  (pod) =>
    read(client, pod, 'areas?limit=200', ({ data }) => namesIn(client, data));

function namesIn({ world }: Client, areas: readonly { id: number; name: string }[]): Register[] {
  const isMoving = (id: number): boolean => world.movingAreas.some((area) => area.id === id);
  return areas
    .filter(({ id }) => isMoving(id))
    .map(({ id, name }) => ({ register: nameOf(id), value: name }));
}

export const readKey = (client: Client, key: CycledKey | undefined): Read =>
  key === undefined
    ? readAccount(client)
    : (pod) => readState(pod, 'areas?limit=1', key.key, keyOf(key), 'active');

export const readDevice = (client: Client, imei: string | undefined): Read =>
  imei === undefined
    ? readAccount(client)
    : (pod) => readState(pod, `devices/${imei}`, client.world.keys.owner, deviceOf(imei), 'known');

export const readAccount =
  (client: Client): Read =>
  (pod) =>
    readState(pod, 'devices?limit=1', client.world.keys.suspended, SUSPENDED_ACCOUNT, 'active');

export const readShared =
  (client: Client): Read =>
  (pod) => {
    const { sharedAreaId, keys } = client.world;
    return readState(pod, `areas/${sharedAreaId}`, keys.member, SHARED_AREA, 'shared');
  };

/** Positions that a pod shows, of one device or of several. */
export const readPositions =
  (client: Client, path: () => string) =>
  async (pod: SimulatedPod): Promise<RecordedPositions> => {
    const asked = await get(pod, path(), client.world.keys.owner);
    const finds = asked.status === 200 ? [asked.body.data].flat().map(positionOf) : [];
    return { kind: 'positions', ...facts(asked), finds };
  };

/** A device as an answer shows it. */
export function positionOf({ imei, location }: { imei: string; location: { recorded_at: string } | null }) {
  return { imei, atMs: location === null ? null : Date.parse(location.recorded_at) };
}

const get = (pod: SimulatedPod, path: string, key: string): Promise<Asked> =>
  ask(pod, 'api', `/api/v3/${path}`, { headers: { 'X-API-Key': key } });

async function read(
  { world }: Client,
  pod: SimulatedPod,
  path: string,
  find: (body: Asked['body']) => readonly Register[],
): Promise<RecordedRead> {
  const asked = await get(pod, path, world.keys.owner);
  return { kind: 'read', ...facts(asked), finds: asked.status === 200 ? find(asked.body) : [] };
}

/** Codes that show what a register is. */
const VALUES: Readonly<Record<string, string>> = {
  API_KEY_REVOKED: 'revoked',
  API_KEY_OWNER_INACTIVE: 'inactive',
  API_KEY_INVALID: UNSET,
  DEVICE_NOT_FOUND: UNSET,
  NOT_FOUND: 'private',
};

/** Whether a call is answered, then the register has that value, or with which code. */
async function readState(
  pod: SimulatedPod,
  path: string,
  key: string,
  register: string,
  value: string,
): Promise<RecordedRead> {
  const asked = await get(pod, path, key);
  const found = asked.status === 200 ? value : VALUES[asked.code ?? ''];
  return { kind: 'read', ...facts(asked), finds: found === undefined ? [] : [{ register, value: found }] };
}
