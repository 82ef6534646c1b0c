import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Attack,
  type Attacker,
  type AttackSetup,
  accountOf,
  atOnce,
  headersOf,
  sized,
} from './attack.ts';
import { seedAreas, seedDevices } from './seeds.ts';

const PLACE = { lat: 45.5, lng: 10.5 };
const STREAMS_OF_A_KEY = 10;
const AREAS = 5;
const BATCH = 10_000;
const ROUND_MS = 1_000;

const devicesOf = (setup: AttackSetup): number => sized(setup, 100, 10_000);

/**
 * As many streams as a key may have on a large fleet that reports every second, half of them never read, with the pages
 * of all changes and with the list of those inside an area, as the console asks for it.
 */
export const BUSY_STREAMS: Attack = {
  name: 'streams of a busy fleet',
  accounts: 1,
  lasts: true,
  seed: async (seeding) => {
    const { sql, firstImei } = seeding;
    const { accountId, worldId } = accountOf(seeding);
    const place = { lat: String(PLACE.lat), lng: String(PLACE.lng) };
    await seedDevices(sql, worldId, { firstImei, count: devicesOf(seeding), place });
    const shape = { vertices: 20, centre: PLACE, radiusDeg: 0.1 };
    await seedAreas(sql, { accountId, worldId }, { ...shape, count: AREAS });
  },
  run: async (attacker) => {
    void atOnce(STREAMS_OF_A_KEY, (n) =>
      get(attacker, '/api/v3/stream?snapshot=true', n % 2 === 0 ? undefined : 'unread'),
    );
    const areaId = await firstArea(attacker);
    for (let round = 0; !attacker.stopped.aborted; round++) {
      void get(attacker, '/api/v3/devices/changes?limit=500');
      void get(attacker, `/api/v3/areas/${areaId}/devices?limit=200`);
      await sendFleet(attacker, round);
      await sleep(ROUND_MS);
    }
  },
};

function get(attacker: Attacker, path: string, manner?: 'unread'): Promise<number | null> {
  const headers = headersOf(accountOf(attacker));
  return attacker.call({ url: attacker.apiUrl + path, headers, ...(manner === undefined ? {} : { manner }) });
}

async function firstArea(attacker: Attacker): Promise<number> {
  const headers = headersOf(accountOf(attacker));
  const response = await fetch(`${attacker.apiUrl}/api/v3/areas?limit=1`, { headers });
  const { data } = (await response.json()) as { data: { id: number }[] };
  return data[0]?.id ?? 0;
}

/** Every device moves. */
async function sendFleet(attacker: Attacker, round: number): Promise<void> {
  const recordedAtMs = Date.now();
  const devices = devicesOf(attacker);
  for (let first = 0; first < devices; first += BATCH) {
    const points = Array.from({ length: Math.min(BATCH, devices - first) }, (_, n) => ({
      imei: String(attacker.firstImei + first + n),
      recorded_at: recordedAtMs,
      latitude: PLACE.lat + (n % 100) * 0.001,
      longitude: PLACE.lng + (round % 50) * 0.001,
    }));
    await attacker.call({
      url: `${attacker.ingestUrl}/positions`,
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': attacker.token },
      body: JSON.stringify(points),
    });
  }
}
