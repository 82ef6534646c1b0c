import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { KeyState } from '../../src/access/credentials.ts';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { nearestRoute } from '../../src/devices/nearest.routes.ts';
import { distanceM } from '../../src/geo/wgs84.ts';
import { unexpectedErrorAnswer } from '../../src/http/unexpectedError.ts';
import { Overloaded } from '../../src/lib/fairSemaphore.ts';
import type { AtOnce, WorkTurns } from '../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, positionAt } from '../support/devices.ts';
import { apiSide, keyOf, OTHER_WORLD } from '../support/http/apiSide.ts';
import { bareRequest } from '../support/http/http.ts';
import { seededRandom } from '../support/seededRandom.ts';

const DEVICES = 12_000;
const NOW_MS = Date.UTC(2026, 10, 20);
const POLE = '/api/v3/devices/nearest?lat=90&lng=0&limit=3';
/** The account whose devices all stand on the equator asks from a pole. */
const askFromPole = () => bareRequest(side.url, POLE, { headers: { 'X-API-Key': keyOf('now') } });

const fleet = new Fleet();
function put(id: number, worldId: number, lat: number, lng: number): string {
  const imei = imeiOf((id * 7_919) % 99_991);
  fleet.putDevice(fieldsOf({ id, imei, worldId }));
  fleet.move(id, positionAt(lat, lng, NOW_MS));
  return imei;
}
const random = seededRandom(3);
const nearestImeis = Array.from({ length: DEVICES }, (_, n) => {
  const lng = 360 * random() - 180;
  return { imei: put(n + 1, 1, 0, lng), m: distanceM(90, 0, 0, lng) };
})
  .sort((a, b) => a.m - b.m || (a.imei < b.imei ? -1 : 1))
  .slice(0, 3)
  .map(({ imei }) => imei);
put(DEVICES + 1, OTHER_WORLD, 41.9, 12.5);
const memory = { fleet, areas: new AreaCatalog() };
const side = apiSide(memory);

test('thousands of devices that are nearly equally near are ordered to the last digit', async () => {
  assert.equal(fleet.near([1], 90, 0, 3, Number.POSITIVE_INFINITY), null);
  const imeis = JSON.parse((await askFromPole()).text).data.map(({ imei }: { imei: string }) => imei);
  assert.deepEqual(imeis, nearestImeis);
});

test('another account is answered while one asks for long searches without a pause', async () => {
  let isOver = false;
  const attack = Array.from({ length: 12 }, async () => {
    while (!isOver) assert.equal((await askFromPole()).status, 200);
  });
  const path = '/api/v3/devices/nearest?lat=41&lng=12';
  for (let n = 0; n < 5; n++) {
    const { status } = await bareRequest(side.url, path, { headers: { 'X-API-Key': keyOf('other') } });
    assert.equal(status, 200);
  }
  isOver = true;
  await Promise.all(attack);
});

test('more long searches of an account than may wait are refused with 503, and none of another', async () => {
  const never = { run: () => new Promise<never>(() => undefined) } as unknown as WorkTurns<string | number>;
  const atOnce = { run: (_: number, work: () => unknown) => work() } as unknown as AtOnce<string | number>;
  const { handle } = nearestRoute({ fleet, turns: never, atOnce });
  const ask = (accountId: number) =>
    handle({
      version: 'v3',
      caller: { accountId, worldIds: [1] } as unknown as KeyState,
      params: {},
      query: { lat: '90', lng: '0' },
      nowMs: NOW_MS,
      body: null,
      header: () => undefined,
    });
  for (let n = 0; n < 51; n++) void ask(1);
  await assert.rejects(async () => ask(1), Overloaded);
  const denial = await Promise.race([Promise.resolve(ask(2)), turn()]);
  assert.equal(denial, undefined, 'another account waits for its turn');
  const ports = { log: { error: assert.fail, warn: () => undefined }, onDamaged: () => assert.fail() };
  assert.equal(
    unexpectedErrorAnswer(new Overloaded('planned'), { method: 'GET' } as IncomingMessage, ports).status,
    503,
  );
});
