import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { TOO_MANY_DEVICES } from '../../../src/devices/importDevices.ts';
import { type FleetRun, fleetDatabase } from '../runFleet.ts';

const database = fleetDatabase();
let serial = 0;
before(() => database.sql`insert into plan (name, history_days, max_devices) values ('small', 1, 5)`);

const nextImei = (): string => String(860_000_000_000_000 + serial++);
const imeis = (count: number): string[] => Array.from({ length: count }, nextImei);

/** An account of the plan that allows five devices. */
async function small(organization?: string): Promise<string> {
  const email = `small${++serial}@x`;
  const others = organization === undefined ? '' : `--organization '${organization}'`;
  await database.fleet(`account:create --email ${email} --name A --plan small ${others}`);
  return email;
}

function load(email: string, lines: readonly string[], organization = false): Promise<FleetRun> {
  const stdin = lines
    .map((imei) => JSON.stringify({ imei, ...(organization && { organization }) }))
    .join('\n');
  return database.fleet(`device:import --email ${email} -`, { stdin });
}

const rejectedLines = ({ json }: FleetRun): number[] =>
  json.rejected.map(({ line, message }: { line: number; message: string }) => {
    assert.equal(message, TOO_MANY_DEVICES);
    return line;
  });

describe('devices beyond the plan', () => {
  test('are rejected by line, in order; those that there are may be imported again', async () => {
    const email = await small();
    const first = imeis(7);
    const run = await load(email, first);
    assert.deepEqual([run.code, run.json.created, rejectedLines(run)], [1, 5, [6, 7]]);
    const again = await load(email, [...first.slice(0, 5), nextImei()]);
    assert.deepEqual([again.json.created, again.json.updated, rejectedLines(again)], [0, 5, [6]]);
  });

  test('cannot be created one by one either', async () => {
    const email = await small();
    await load(email, imeis(4));
    const create = () => `device:create --email ${email} --imei ${nextImei()}`;
    assert.equal((await database.fleet(create())).code, 0);
    await database.refuses(create(), 1, `device:create: ${TOO_MANY_DEVICES}\n`);
  });

  test('are counted exactly when several imports run at once; a neighbour imports more', async () => {
    const email = await small();
    await database.fleet('account:create --email large@x --name A');
    const runs = await Promise.all([
      ...[3, 3, 3].map((count) => load(email, imeis(count))),
      load('large@x', imeis(20)),
    ]);
    assert.deepEqual(
      runs.map(({ code }) => code),
      runs.map(({ json }) => (json.rejected.length > 0 ? 1 : 0)),
    );
    const created = runs.map(({ json }) => json.created);
    assert.equal(created[0] + created[1] + created[2], 5);
    assert.equal(created[3], 20);
  });

  test('are counted for the organization by themselves, and a move makes room at home', async () => {
    const email = await small('Quota Inc.');
    const own = imeis(5);
    await load(email, own);
    const shared = await load(email, imeis(4), true);
    assert.equal(shared.json.created, 4);
    const moved = await load(email, own.slice(0, 2), true);
    assert.deepEqual([moved.json.updated, rejectedLines(moved)], [1, [2]]);
    assert.deepEqual(rejectedLines(await load(email, imeis(2))), [2]);
  });
});
