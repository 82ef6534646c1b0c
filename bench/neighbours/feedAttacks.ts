import { setTimeout as sleep } from 'node:timers/promises';
import { openBenchSql } from '../setup/cluster.ts';
import { type Attack, type Attacker, atOnce, headersOf } from './attack.ts';
import { seedAreas, seedKey } from './seeds.ts';

const PLACE = { lat: 45.5, lng: 10.5 };
const PLACE_SQL = { lat: '45.5', lng: '10.5' };
const STREAMS_OF_A_KEY = 10;
const AREAS = 5;
const BATCH = 10_000;
const STREAM_ROUND_MS = 1_000;
const WAITS_OF_A_KEY = 20;
const KEYS_OF_AN_ADDRESS = 5;
/** Between the calls of one key and those of the next: a thousand connections at once are another attack. */
const OPENING_MS = 15;
const WAIT_ROUND_MS = 2_000;

/**
 * As many streams as a key may have on a large fleet that reports every second, half of them never read, with the pages
 * of all changes and with the list of those inside an area, as the console asks for it.
 */
export const BUSY_STREAMS: Attack = {
  name: 'streams of a busy fleet',
  lasts: true,
  seed: async (seeding) => {
    await seeding.seedDevices(seeding.sized(100, 10_000), PLACE_SQL);
    const areas = { vertices: 20, centre: PLACE, radiusDeg: 0.1, count: AREAS };
    await seedAreas(seeding.sql, seeding.account(), areas);
  },
  run: async (attacker) => {
    void atOnce(STREAMS_OF_A_KEY, (n) =>
      attacker.get('/api/v3/stream?snapshot=true', n % 2 === 0 ? undefined : 'unread'),
    );
    const [area] = await attacker.fetchData<{ id: number }[]>('/api/v3/areas?limit=1');
    for (let round = 0; !attacker.stopped.aborted; round++) {
      void attacker.get('/api/v3/devices/changes?limit=10000');
      void attacker.get(`/api/v3/areas/${area?.id}/devices?limit=200`);
      await moveFleet(attacker, attacker.sized(100, 10_000), round);
      await sleep(STREAM_ROUND_MS);
    }
  },
};

/**
 * As many calls as an account may have waiting for changes of its fleet, half of them each from a place of its own. Then
 * every device moves, and nobody reads.
 */
export const UNREAD_WAITS: Attack = {
  name: 'unread waits for changes',
  lasts: true,
  seed: (seeding) => seeding.seedDevices(seeding.sized(100, 1_000), PLACE_SQL),
  run: async (attacker) => {
    const devices = attacker.sized(100, 1_000);
    const keys = await makeKeys(attacker, attacker.sized(2, 60));
    const cursor = await cursorAtTheEnd(attacker, keys[0] ?? '');
    const waits = keys.length * WAITS_OF_A_KEY;
    void atOnce(waits, async (n) => {
      await sleep(Math.floor(n / WAITS_OF_A_KEY) * OPENING_MS);
      // Pages of different sizes are different pages.
      const limit = n % 2 === 0 ? devices : devices - (n % 500);
      const headers = headersFrom(attacker, keys, Math.floor(n / WAITS_OF_A_KEY));
      const url = `${attacker.apiUrl}/api/v3/devices/changes?wait=25&limit=${limit}&cursor=${cursor}`;
      return attacker.call({ url, headers, manner: 'unread' });
    });
    await sleep(WAIT_ROUND_MS / 2);
    for (let round = 0; !attacker.stopped.aborted; round++) {
      await moveFleet(attacker, devices, round);
      await sleep(WAIT_ROUND_MS);
    }
  },
};

async function makeKeys(attacker: Attacker, count: number): Promise<string[]> {
  await using sql = openBenchSql(attacker.databaseUrl);
  const keys: string[] = [];
  for (let n = 0; n < count; n++) keys.push(await seedKey(sql, attacker.account().accountId));
  return keys;
}

/** Each address calls no more than it may in a minute. */
function headersFrom(attacker: Attacker, keys: readonly string[], keyNumber: number): Record<string, string> {
  const network = attacker.account().address.split('.').slice(0, 3).join('.');
  const address = `${network}.${100 + Math.floor(keyNumber / KEYS_OF_AN_ADDRESS)}`;
  return headersOf({ ...attacker.account(), key: keys[keyNumber] ?? '', address });
}

async function cursorAtTheEnd(attacker: Attacker, key: string): Promise<string> {
  const headers = headersOf({ ...attacker.account(), key });
  let cursor = '';
  for (let hasMore = true; hasMore; ) {
    const at = cursor === '' ? '' : `&cursor=${cursor}`;
    const response = await fetch(`${attacker.apiUrl}/api/v3/devices/changes?limit=1000${at}`, { headers });
    const { meta } = (await response.json()) as { meta: { cursor: string; has_more: boolean } };
    cursor = meta.cursor;
    hasMore = meta.has_more;
  }
  return cursor;
}

async function moveFleet(attacker: Attacker, devices: number, round: number): Promise<void> {
  const recordedAtMs = Date.now();
  for (let first = 0; first < devices; first += BATCH) {
    const points = Array.from({ length: Math.min(BATCH, devices - first) }, (_, n) => ({
      imei: String(attacker.firstImei + first + n),
      recorded_at: recordedAtMs,
      latitude: PLACE.lat + (n % 100) * 0.001,
      longitude: PLACE.lng + (round % 50) * 0.001,
    }));
    await attacker.sendPoints(points);
  }
}
