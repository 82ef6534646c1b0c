import type { Server } from 'node:http';
import type { AccessDecision, Authorizer } from '../../../src/access/authorizer.ts';
import { fingerprint, type ShownKey } from '../../../src/access/credentials.ts';
import { CidrSet, type ClientAddress, type Network, parseNetwork } from '../../../src/access/ipAddress.ts';
import { scopeMask } from '../../../src/access/scopes.ts';
import { AreaCatalog } from '../../../src/areas/areaCatalog.memory.ts';
import { areaReadRoutes } from '../../../src/areas/areaReads.routes.ts';
import { deviceRoutes } from '../../../src/devices/devices.routes.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { nearestRoute } from '../../../src/devices/nearest.routes.ts';
import type { StreamedBody } from '../../../src/http/answer.ts';
import { BulkCalls } from '../../../src/http/bulkCalls.ts';
import { type ApiPorts, apiListener } from '../../../src/http/dispatcher.ts';
import type { Route } from '../../../src/http/route.ts';
import { createHttpServer } from '../../../src/http/server.ts';
import { Overloaded } from '../../../src/lib/fairSemaphore.ts';
import { DeadlineExceeded } from '../../../src/lib/time.ts';
import { AtOnce, WorkTurns } from '../../../src/lib/workTurns.ts';
import { areaInMemory } from '../ingest/polygons.ts';
import { started } from '../started.ts';
import { newBodyPorts } from '../workTurns.ts';
import { serve } from './serve.ts';

const NOW_MS = Date.UTC(2026, 10, 20);
const WORLD = 1;
/** Of the other keys. */
export const ACCOUNT = WORLD;
/** Of the key `other`, which belongs to another account. */
export const OTHER_WORLD = 2;
export const IMEI = '350000000000017';
const LOOPBACK = parseNetwork('127.0.0.1/32') as Network;

const grantedAs = (scopes: number, worldId = WORLD) =>
  ({
    kind: 'granted',
    caller: { worldIds: [worldId], accountId: worldId, scopes },
  }) as unknown as AccessDecision;

/** What becomes of a call by the key that it shows. */
const FATES = [
  'now',
  'later',
  'other',
  'scopeless',
  'limited',
  'limited later',
  'by address',
  'unavailable',
  'unavailable later',
  'fault',
] as const;
type Fate = (typeof FATES)[number];

export function keyOf(fate: Fate): string {
  return `fk_${fate.replace(' ', 'X').padEnd(43, '0')}`;
}

export const KEYS = FATES.map(keyOf);
const fateOf = new Map(FATES.map((fate) => [fingerprint(keyOf(fate)), fate]));

/** At once or later. */
function authorize(shown: ShownKey, client: ClientAddress): AccessDecision | Promise<AccessDecision> {
  const reading = scopeMask('read_devices', 'read_locations', 'read_areas');
  const authorized = grantedAs(reading);
  if (shown.kind === 'none') return { kind: 'denied', code: 'API_KEY_REQUIRED' };
  const fate = shown.kind === 'key' ? fateOf.get(shown.fingerprint) : undefined;
  switch (fate) {
    case undefined:
      return { kind: 'denied', code: 'API_KEY_INVALID' };
    case 'later':
      return Promise.resolve(authorized);
    case 'other':
      return grantedAs(reading, OTHER_WORLD);
    case 'scopeless':
      return grantedAs(scopeMask('write_areas'));
    case 'limited':
      return { kind: 'limited', limit: 'key_minute' };
    case 'limited later':
      return Promise.resolve({ kind: 'limited', limit: 'ip_minute' });
    case 'by address':
      return client.address.text === '198.51.100.7'
        ? authorized
        : { kind: 'denied', code: 'API_KEY_IP_BLOCKED' };
    case 'unavailable':
      throw new DeadlineExceeded('too slow');
    case 'unavailable later':
      return Promise.reject(new DeadlineExceeded('too slow'));
    case 'fault':
      throw new Error('secret detail');
    case 'now':
      return authorized;
  }
}

function knownAccount(shown: ShownKey): number | undefined {
  const fate = shown.kind === 'key' ? fateOf.get(shown.fingerprint) : undefined;
  return fate === undefined ? undefined : fate === 'other' ? OTHER_WORLD : WORLD;
}

/** What a side answers from. */
export interface SideMemory {
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
}

function smallMemory(): SideMemory {
  const fleet = new Fleet();
  for (const [id, name] of [
    [1, 'Van "12" — Überführung'],
    [2, null],
    [3, 'Truck'],
  ] as const) {
    const fields = {
      id,
      imei: String(Number(IMEI) + id - 1),
      worldId: WORLD,
      name,
      plate: null,
      model: null,
      groups: ['a'],
      editedAtMs: 0,
    };
    fleet.putDevice(fields);
    const position = {
      recordedAtMs: NOW_MS - 1_000,
      lat: 41.9,
      lng: 12.5,
      altitudeM: 1,
      speedKmh: 3,
      odometerKm: null,
      movedAtMs: NOW_MS,
    };
    if (id !== 2) fleet.move(id, position);
  }
  const areas = new AreaCatalog();
  const center = { lat: 41.9, lng: 12.5 };
  areas.put(areaInMemory(7, { type: 'circle', center, radiusM: 100 }, { name: 'Depot' }));
  return { fleet, areas };
}

const crowdedBody: StreamedBody = {
  bytes: null,
  open: () => Promise.reject(new Overloaded('planned')),
  next: () => Promise.resolve(false),
  close: () => undefined,
};

/** Fails after its first piece. */
function breakingBody(closed: string[]): StreamedBody {
  let pieces = 0;
  return {
    bytes: null,
    open: () => Promise.resolve(),
    next: (take) => {
      if (++pieces > 1) return Promise.reject(new Error('secret detail'));
      take(Buffer.from('{"data":['));
      return Promise.resolve(true);
    },
    close: () => closed.push('closed'),
  };
}

/** A server around the polled routes, with a memory of its own. */
export interface Side {
  readonly url: string;
  readonly server: Server;
  readonly observed: string[];
  readonly logged: string[];
  /** A line for each body of `/breaks` that was closed. */
  readonly closed: string[];
}

interface SideOptions {
  readonly isLoaded?: boolean;
  /** Answers `/asked`. */
  readonly asked?: Route['handle'];
  readonly shedder?: ApiPorts['shedder'];
  readonly traces?: ApiPorts['traces'];
}

const CALM: ApiPorts['shedder'] = {
  isActive: false,
  isRefusing: () => false,
  refuse: () => null,
  noteWait: () => undefined,
};

export async function serveSide(
  { fleet, areas }: SideMemory = smallMemory(),
  {
    isLoaded = true,
    asked = () => ({ status: 200, body: '{}' }),
    shedder = CALM,
    traces = null,
  }: SideOptions = {},
): Promise<Side> {
  const turns = new WorkTurns<string | number>(1);
  const atOnce = new AtOnce(turns);
  const nearest = nearestRoute({ fleet, turns, atOnce });
  const observed: string[] = [];
  const logged: string[] = [];
  const closed: string[] = [];
  const broken = (path: string, handle: Route['handle']): Route => ({ ...nearest, path, handle });
  const server = createHttpServer(
    apiListener({
      ...newBodyPorts(),
      authorizer: { authorize, knownAccount } as Pick<Authorizer, 'authorize' | 'knownAccount'> as Authorizer,
      routes: [
        nearest,
        ...deviceRoutes({ fleet, bulkCalls: new BulkCalls(turns), atOnce }),
        ...areaReadRoutes({ areas, turns, atOnce }),
        broken('/asked', asked),
        broken('/throws', () => {
          throw new Error('secret detail');
        }),
        broken('/rejects', () => Promise.reject(new Error('secret detail'))),
        broken('/away', () => Promise.reject(new DeadlineExceeded('too slow'))),
        broken('/crowded', () => ({ status: 200, body: crowdedBody })),
        broken('/breaks', () => ({ status: 200, body: breakingBody(closed) })),
        broken('/empty', () => ({ status: 204, body: null, headers: { 'X-Own': 'yes' } })),
        broken('/moved', () => ({ status: 201, body: '{}', headers: { Location: '/there' } })),
      ],
      shedder,
      traces,
      trustedProxies: new CidrSet([LOOPBACK]),
      addPages: () => undefined,
      clock: () => NOW_MS,
      probes: {
        loaded: () => isLoaded,
        canAnswer: () => true,
        degradations: () => [],
        writeTrouble: async () => null,
        lastWriteTrouble: () => null,
      },
      onDamaged: () => undefined,
      log: { error: (_, message) => logged.push(message), warn: (_, message) => logged.push(message) },
      observe: (route, method, status) => void observed.push(`${method} ${route} ${status}`),
    }),
  );
  const { url } = await serve(undefined, server);
  return {
    url,
    server,
    observed,
    logged,
    closed,
  };
}

/** Such a server for the tests of the file that calls this. */
export function apiSide(memory?: SideMemory): Side {
  return started(
    () => serveSide(memory),
    async ({ server }) => server.close(),
  );
}
