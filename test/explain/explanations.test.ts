import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { insertArea } from '../../src/areas/areas.sql.ts';
import { type ExplainRequest, Explanations } from '../../src/explain/explanations.ts';
import { inOneGo, type Steps, type WorkTurns } from '../../src/lib/workTurns.ts';
import type { Sql, Tx } from '../../src/postgres/sql.ts';
import { type MemoryPod, openMemoryPod } from '../coherence/memoryPod.ts';
import { validArea } from '../support/http/areas.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';
import { newTurns } from '../support/workTurns.ts';
import { storeTrips, TRIP_AREA } from './storedTrips.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
const START_MS = Math.floor(Date.now() / 1_000 - 86_400) * 1_000;
const POINTS = 10_000;

let pod: MemoryPod;
let request: ExplainRequest;

before(async () => {
  const { url } = await createDatabase();
  const admin = adminOf(url);
  await admin.account(OWNER);
  await admin.device(OWNER, IMEI);
  pod = openMemoryPod(url);
  const [row] = await pod.sql<{ account: number; world: number; device: number }[]>`
    select a.id as account, a.world_id as world, d.id as device from account a, device d`;
  assert.ok(row);
  const { definition, measures } = validArea(TRIP_AREA);
  const owner = { accountId: row.account, worldId: row.world };
  const area = await pod.sql.begin((tx) => insertArea(tx, owner, definition, measures));
  await storeTrips(pod.sql, [IMEI], POINTS, START_MS);
  request = {
    accountId: row.account,
    worldIds: [row.world],
    areaId: area?.id ?? 0,
    deviceId: row.device,
    imei: IMEI,
    names: { device: 'Van', area: 'Trips' },
    fromMs: START_MS,
    toMs: START_MS + POINTS * 1_000,
    trimmedToDays: null,
    withSteps: false,
  };
});
after(() => pod.close());

test('no connection is held while points are evaluated', async () => {
  let held = 0;
  const { sql } = pod;
  const begin = async (options: string, work: (tx: Tx) => Promise<unknown>) => {
    held++;
    return sql.begin(options, work).finally(() => held--);
  };
  const reads = Object.assign((...args: Parameters<Sql>) => sql(...args), { ...sql, begin }) as Sql;
  let turnsTaken = 0;
  const run = async <T>(_key: unknown, steps: Steps<T>): Promise<T> => {
    turnsTaken++;
    // What is read ahead ends by itself.
    await waitFor(() => held === 0);
    return inOneGo(steps);
  };
  const turns = { run } as unknown as WorkTurns<string | number>;
  const outcome = await new Explanations({ reads: () => reads, turns }).open(request);
  assert.ok(typeof outcome !== 'string');
  outcome.close();
  assert.equal(outcome.points, POINTS);
  assert.ok(turnsTaken >= 3, `${turnsTaken} pages`);
});

test('one of more points or more processor time than it may have is refused, and leaves its place to the next', async () => {
  const ports = { reads: () => pod.sql, turns: newTurns() };
  const few = new Explanations(ports, POINTS - 1);
  assert.equal(await few.open(request), 'too_many_points');
  const fits = await few.open({ ...request, fromMs: START_MS + 1_000 });
  assert.ok(typeof fits !== 'string');
  assert.equal(fits.points, POINTS - 1);
  fits.close();
  const short = new Explanations(ports, POINTS, 0);
  for (let n = 0; n < 3; n++) assert.equal(await short.open(request), 'too_much_work');
});
