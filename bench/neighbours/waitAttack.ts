import { setTimeout as sleep } from 'node:timers/promises';
import { openSql } from '../../src/postgres/sql.ts';
import {
  type Attack,
  type Attacker,
  type AttackSetup,
  accountOf,
  atOnce,
  headersOf,
  sized,
} from './attack.ts';
import { seedDevices, seedKey } from './seeds.ts';

const PLACE = { lat: 46.5, lng: 11.5 };
const WAITS_OF_A_KEY = 20;
const KEYS_OF_AN_ADDRESS = 5;
/** Between the calls of one key and those of the next: a thousand connections at once are another attack. */
const OPENING_MS = 15;
const ROUND_MS = 2_000;

const devicesOf = (setup: AttackSetup): number => sized(setup, 100, 1_000);

/**
 * As many calls as an account may have waiting for changes of its fleet, half of them each from a place of its own. Then
 * every device moves, and nobody reads.
 */
export const UNREAD_WAITS: Attack = {
  name: 'unread waits for changes',
  accounts: 1,
  lasts: true,
  seed: async (seeding) => {
    const place = { lat: String(PLACE.lat), lng: String(PLACE.lng) };
    const { worldId } = accountOf(seeding);
    await seedDevices(seeding.sql, worldId, {
      firstImei: seeding.firstImei,
      count: devicesOf(seeding),
      place,
    });
  },
  run: async (attacker) => {
    const keys = await makeKeys(attacker, sized(attacker, 2, 60));
    const cursor = await cursorAtTheEnd(attacker, keys[0] ?? '');
    const waits = keys.length * WAITS_OF_A_KEY;
    void atOnce(waits, async (n) => {
      await sleep(Math.floor(n / WAITS_OF_A_KEY) * OPENING_MS);
      // Pages of different sizes are different pages.
      const limit = n % 2 === 0 ? devicesOf(attacker) : devicesOf(attacker) - (n % 500);
      const keyNumber = Math.floor(n / WAITS_OF_A_KEY);
      const headers = headersFrom(attacker, keys, keyNumber);
      const url = `${attacker.apiUrl}/api/v3/devices/changes?wait=25&limit=${limit}&cursor=${cursor}`;
      return attacker.call({ url, headers, manner: 'unread' });
    });
    await sleep(ROUND_MS / 2);
    for (let round = 0; !attacker.stopped.aborted; round++) {
      await moveFleet(attacker, round);
      await sleep(ROUND_MS);
    }
  },
};

async function makeKeys({ databaseUrl, ...setup }: Attacker, count: number): Promise<string[]> {
  const sql = openSql(databaseUrl, { maxConnections: 1, name: 'bench neighbours' });
  try {
    const keys: string[] = [];
    for (let n = 0; n < count; n++) keys.push(await seedKey(sql, accountOf(setup).accountId));
    return keys;
  } finally {
    await sql.end();
  }
}

/** Each address calls no more than it may in a minute. */
function headersFrom(attacker: Attacker, keys: readonly string[], keyNumber: number): Record<string, string> {
  const network = accountOf(attacker).address.split('.').slice(0, 3).join('.');
  const address = `${network}.${100 + Math.floor(keyNumber / KEYS_OF_AN_ADDRESS)}`;
  return headersOf({ ...accountOf(attacker), key: keys[keyNumber] ?? '', address });
}

async function cursorAtTheEnd(attacker: Attacker, key: string): Promise<string> {
  const headers = headersOf({ ...accountOf(attacker), key });
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

async function moveFleet(attacker: Attacker, round: number): Promise<void> {
  const recordedAtMs = Date.now();
  const points = Array.from({ length: devicesOf(attacker) }, (_, n) => ({
    imei: String(attacker.firstImei + n),
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
