import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { IMPORT_CHUNK } from '../../../src/devices/importDevices.ts';
import { type FleetOptions, fleetDatabase } from '../runFleet.ts';

const database = fleetDatabase(
  'account:create --email alone@x --name A',
  'account:create --email m1@x --name A --organization Acme',
  'account:create --email m2@x --name A --organization Acme',
  'account:create --email other@x --name A --organization Other',
);
let folder: string;
const worlds: Record<string, number> = {};
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fleet-import-'));
  for (const { key, id } of await database.sql<{ key: string; id: number }[]>`
    select email as key, world_id as id from account union select name, world_id from organization`) {
    worlds[key] = id;
  }
});
after(() => rm(folder, { recursive: true }));

const importOf = (email: string, file = '-') => `device:import --email ${email} ${file}`;

/** Imports a text by way of stdin. */
const load = (email: string, stdin: string) => database.fleet(importOf(email), { stdin });
const watchLoad = (email: string, stdin: string) => database.watch(importOf(email), { stdin });

let serial = 0;
/** An IMEI that no other test uses. */
const nextImei = (): string => String(860_000_000_000_000 + serial++);

async function deviceRow(imei: string) {
  const [row] = await database.sql`
    select d.id, d.world_id, d.name, d.plate, d.device_model, d.groups, s.device_id is not null as has_state
    from device d left join device_state s on s.device_id = d.id where d.imei = ${imei}`;
  return row === undefined ? undefined : { ...row };
}

describe('a file', () => {
  test('in CSV is read from its path', async () => {
    const imei = nextImei();
    const path = join(folder, 'devices.csv');
    await writeFile(
      path,
      `\ufeffimei,name,plate,device_model,groups,organization\r\n${imei},"Truck, red",RM 1,FMB920,a;b,\r\n`,
    );
    const { code, json } = await database.fleet(importOf('m1@x', path));
    assert.equal(code, 0);
    assert.deepEqual(json, { created: 1, updated: 0, rejected: [] });
    const row = await deviceRow(imei);
    const fields = { name: 'Truck, red', plate: 'RM 1', device_model: 'FMB920', groups: ['a', 'b'] };
    assert.deepEqual(row, { id: row?.['id'], world_id: worlds['m1@x'], ...fields, has_state: true });
  });

  test('in NDJSON is read from stdin', async () => {
    const imei = nextImei();
    const device = { imei, name: 'Truck', groups: ['x'], organization: true };
    const { json } = await load('m1@x', JSON.stringify(device));
    assert.deepEqual(json, { created: 1, updated: 0, rejected: [] });
    const row = await deviceRow(imei);
    assert.deepEqual([row?.['world_id'], row?.['name'], row?.['groups']], [worlds['Acme'], 'Truck', ['x']]);
  });

  test('that cannot be read as a whole imports nothing', async () => {
    const imei = nextImei();
    for (const [text, message] of [
      [
        `imei,colour\n${imei},red`,
        /the header has unknown columns: "colour"; known are imei, .*; nothing was imported/,
      ],
      ['', /the file is empty; nothing was imported/],
    ] as const)
      await database.refuses(importOf('m1@x'), 1, message, { stdin: text });
    assert.equal(await deviceRow(imei), undefined);
  });

  test('that is not there, a folder, or of an unknown account is refused', async () => {
    for (const [email, file, message] of [
      ['m1@x', join(folder, 'missing.csv'), /there is no file .*missing\.csv/],
      ['m1@x', folder, /is a folder/],
      ['nobody@x', '-', /there is no account nobody@x/],
    ] as const)
      await database.refuses(importOf(email, file), 1, message, { stdin: 'imei\n' });
    const usage = /FILE is missing\n\nusage: fleet device:import --email E FILE\n/;
    await database.refuses(importOf('m1@x', ''), 2, usage);
  });
});

describe('an update', () => {
  test('leaves alone what the file does not name, and clears what it leaves empty', async () => {
    const imei = nextImei();
    await load('m1@x', `imei,name,plate,device_model,groups,organization\n${imei},A,B,C,d;e,true`);
    const before = await deviceRow(imei);
    assert.deepEqual((await load('m1@x', `imei,plate\n${imei},New`)).json, {
      created: 0,
      updated: 1,
      rejected: [],
    });
    assert.deepEqual(await deviceRow(imei), { ...before, plate: 'New' });
    await load('m1@x', `{"imei":"${imei}","name":null}`);
    assert.deepEqual(await deviceRow(imei), { ...before, plate: 'New', name: null });
    await load('m1@x', `imei,plate,groups\n${imei},,`);
    assert.deepEqual(await deviceRow(imei), { ...before, plate: null, name: null, groups: [] });
  });

  test('raises the version of the world and names the device in the feed', async () => {
    const imei = nextImei();
    const created = await watchLoad('alone@x', `imei\n${imei}`);
    const id = (await deviceRow(imei))?.['id'];
    assert.deepEqual(created.rows, [{ kind: 'device', worldId: worlds['alone@x'], entityId: id }]);
    const updated = await watchLoad('alone@x', `imei,name\n${imei},B`);
    assert.deepEqual(updated.rows, created.rows);
    assert.deepEqual([created.raised, updated.raised], [[worlds['alone@x']], [worlds['alone@x']]]);
  });

  test('that changes nothing is counted and costs the pods nothing', async () => {
    const text = `imei,name,groups\n${nextImei()},A,a;b\n${nextImei()},B,`;
    await load('m1@x', text);
    const { result, rows, raised } = await watchLoad('m1@x', text);
    assert.deepEqual(result.json, { created: 0, updated: 2, rejected: [] });
    assert.deepEqual([rows, raised], [[], []]);
  });

  test('that moves a device to the organization, or back, notifies both worlds', async () => {
    const imei = nextImei();
    await load('m1@x', `imei\n${imei}`);
    const id = (await deviceRow(imei))?.['id'];
    const both = [worlds['m1@x'], worlds['Acme']].sort((a, b) => (a ?? 0) - (b ?? 0));
    for (const [organization, world] of [
      ['true', 'Acme'],
      ['false', 'm1@x'],
      ['true', 'Acme'],
      ['', 'm1@x'],
    ] as const) {
      const { rows, raised } = await watchLoad('m1@x', `imei,organization\n${imei},${organization}`);
      assert.equal((await deviceRow(imei))?.['world_id'], worlds[world]);
      assert.deepEqual(raised, both);
      assert.deepEqual(
        rows,
        both.map((worldId) => ({ kind: 'device', worldId, entityId: id })),
      );
    }
  });
});

describe('ownership', () => {
  test("another owner's device is rejected and stays what it is", async () => {
    const [foreign, shared, mine] = [nextImei(), nextImei(), nextImei()];
    await load('other@x', `imei,name,organization\n${foreign},theirs,\n${shared},theirs,true`);
    const before = [await deviceRow(foreign), await deviceRow(shared)];
    const { code, json } = await load(
      'm1@x',
      `imei,name,organization\n${foreign},ours,true\n${mine},ours,\n${shared},ours,`,
    );
    assert.equal(code, 1);
    assert.deepEqual(json, {
      created: 1,
      updated: 0,
      rejected: [
        { line: 2, message: `the device ${foreign} belongs to another owner` },
        { line: 4, message: `the device ${shared} belongs to another owner` },
      ],
    });
    assert.deepEqual([await deviceRow(foreign), await deviceRow(shared)], before);
  });

  test("a member's private device is another owner's for the other members", async () => {
    const imei = nextImei();
    await load('m1@x', `imei\n${imei}`);
    assert.equal((await load('m2@x', `imei\n${imei}`)).json.rejected.length, 1);
  });

  test("every member may change the organization's devices", async () => {
    const imei = nextImei();
    await load('m1@x', `imei,organization\n${imei},true`);
    assert.deepEqual((await load('m2@x', `imei,name\n${imei},B`)).json, {
      created: 0,
      updated: 1,
      rejected: [],
    });
    const row = await deviceRow(imei);
    assert.deepEqual([row?.['name'], row?.['world_id']], ['B', worlds['Acme']]);
  });

  test('an account without an organization can share nothing', async () => {
    const [imei, fine] = [nextImei(), nextImei()];
    const { json } = await load('alone@x', `imei,organization\n${imei},true\n${fine},false`);
    const message = 'organization is true, but the account belongs to no organization';
    assert.deepEqual(json, { created: 1, updated: 0, rejected: [{ line: 2, message }] });
    assert.equal(await deviceRow(imei), undefined);
  });
});

describe('lines', () => {
  test('a wrong one is reported with its number and costs no other', async () => {
    const [one, two] = [nextImei(), nextImei()];
    const text = `imei,name\n${one},A\n12345,B\n\n${two},"C\n${nextImei()},D,E\n${two},C\n`;
    const { code, json, stderr } = await load('m1@x', text);
    assert.deepEqual(
      [code, stderr],
      [
        1,
        'device:import: 3 lines were rejected, each for the reason in the output; the other lines are imported\n',
      ],
    );
    assert.deepEqual(json, {
      created: 2,
      updated: 0,
      rejected: [
        { line: 3, message: 'imei is not an IMEI of 14 to 17 digits' },
        { line: 5, message: 'a quote is opened and never closed' },
        { line: 6, message: 'has 3 values, the header has 2 columns' },
      ],
    });
  });

  test('of several with one IMEI the later ones update the first, also far apart', async () => {
    const imei = nextImei();
    const between = Array.from({ length: IMPORT_CHUNK }, () => `{"imei":"${nextImei()}"}`);
    const text = [
      `{"imei":"${imei}","name":"A","plate":"P"}`,
      `{"imei":"${imei}","name":"B"}`,
      ...between,
      `{"imei":"${imei}","device_model":"M"}`,
    ].join('\n');
    const { json } = await load('m1@x', text);
    assert.deepEqual(json, { created: 1 + IMPORT_CHUNK, updated: 2, rejected: [] });
    const row = await deviceRow(imei);
    assert.deepEqual([row?.['name'], row?.['plate'], row?.['device_model']], ['B', 'P', 'M']);
  });

  test('11 000 are imported in short transactions, with progress on stderr', async () => {
    const count = 11_000;
    const rows = Array.from({ length: count }, (_, index) => `${nextImei()},Truck ${index},a;b`);
    const { result, rows: feed } = await watchLoad('alone@x', ['imei,name,groups', ...rows].join('\n'));
    assert.deepEqual(result.json, { created: count, updated: 0, rejected: [] });
    assert.match(result.stderr, /^\d+ lines: \d+ created, 0 updated, 0 rejected$/m);
    assert.equal(new Set(feed.map(({ entityId }) => entityId)).size, count);
    const [largest] = await database.sql<{ rows: number }[]>`
      select count(*)::int as rows from change group by xid order by 1 desc limit 1`;
    assert.equal(largest?.rows, IMPORT_CHUNK);
    const [states] = await database.sql<{ missing: number }[]>`
      select count(*)::int as missing from device where id not in (select device_id from device_state)`;
    assert.equal(states?.missing, 0);
  });

  test('after an interruption no more are imported, and those that were are counted', async () => {
    const imeis = Array.from({ length: 2 * IMPORT_CHUNK }, nextImei);
    const options: FleetOptions = {
      stdin: ['imei', ...imeis].join('\n'),
      interrupted: AbortSignal.abort(),
    };
    const message = new RegExp(`interrupted; ${IMPORT_CHUNK} created and 0 updated before that stay`);
    await database.refuses(importOf('m1@x'), 1, message, options);
    const [row] = await database.sql<
      { count: number }[]
    >`select count(*)::int as count from device where imei = any(${imeis})`;
    assert.equal(row?.count, IMPORT_CHUNK);
  });

  test('two imports of the same devices at once create each of them once', async () => {
    const imeis = Array.from({ length: 500 }, nextImei);
    const text = ['imei', ...imeis].join('\n');
    const backwards = ['imei', ...imeis.toReversed()].join('\n');
    const runs = await Promise.all([load('m1@x', text), load('m1@x', backwards), load('m1@x', text)]);
    assert.equal(
      runs.reduce((sum, { json }) => sum + json.created, 0),
      imeis.length,
    );
    for (const { code, json } of runs) {
      assert.equal(code, json.rejected.length > 0 ? 1 : 0);
      assert.equal(json.created + json.updated + json.rejected.length, imeis.length);
    }
  });
});
