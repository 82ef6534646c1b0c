import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { simulatedImei } from '../../src/cli/simulatedImei.ts';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { createDatabase } from '../support/postgres.ts';
import { watchFeed } from './feed.ts';
import { type FleetOptions, type FleetRun, runFleet } from './runFleet.ts';

const TOKEN = 'token-of-the-test';

let url: string;
let sql: Sql;
before(async () => {
  url = (await createDatabase()).url;
  sql = openSql(url, { maxConnections: 2, name: 'test' });
});
after(() => sql.end());

interface Batch {
  readonly receivedMs: number;
  readonly points: readonly { readonly imei: string; readonly recorded_at: string }[];
}

interface Listener {
  readonly port: number;
  /** Those that were answered with 200; the empty ones left out. */
  readonly batches: Batch[];
  connections: number;
}

/** Answers like the ingest listener; `statusOf` may refuse the nth batch (from 1) instead. */
async function startListener(
  t: TestContext,
  statusOf: (batch: number) => number = () => 200,
): Promise<Listener> {
  const batches: Batch[] = [];
  let seen = 0;
  const server = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString()) as Batch['points'];
    if (body.length > 0) seen++;
    const isKnown = request.headers['x-ingest-token'] === TOKEN && request.url === '/positions';
    const status = !isKnown ? 403 : body.length === 0 ? 200 : statusOf(seen);
    if (status === 200 && body.length > 0) batches.push({ receivedMs: Date.now(), points: body });
    response.writeHead(status, { 'content-type': 'application/json' });
    const data = { accepted: body.length, duplicates: 0, late: 0, rejected: [], ignored: [] };
    response.end(JSON.stringify(status === 200 ? { data } : { error: { code: 'X', message: 'refused' } }));
  });
  const listener: Listener = { port: 0, batches, connections: 0 };
  server.on('connection', () => listener.connections++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(listener, { port: (server.address() as AddressInfo).port });
}

function simulate(port: number, argv: readonly string[], options: FleetOptions = {}): Promise<FleetRun> {
  const env = {
    INGEST_PORT: String(port),
    INGEST_TOKEN: `${TOKEN},another-token-of-the-test`,
    ...options.env,
  };
  return runFleet(url, ['simulate', ...argv], { ...options, env });
}

describe('simulate', () => {
  test('sends the points of so many seconds, in order for each vehicle, none from the future', async (t) => {
    const listener = await startListener(t);
    const { code, json, stderr } = await simulate(listener.port, [
      '--devices',
      '7',
      '--rate',
      '350',
      '--seconds',
      '1',
    ]);
    assert.equal(code, 0, stderr);
    const { sent, accepted, duplicates, late, rejected } = json;
    assert.deepEqual([sent, accepted, duplicates, late, rejected], [350, 350, 0, 0, 0]);
    assert.ok(json.seconds >= 1);
    const newest = new Map<string, number>();
    let count = 0;
    for (const { receivedMs, points } of listener.batches) {
      assert.ok(points.length <= 1_000);
      for (const { imei, recorded_at } of points) {
        const recordedMs = Date.parse(recorded_at);
        assert.ok(recordedMs > (newest.get(imei) ?? 0) && recordedMs <= receivedMs);
        newest.set(imei, recordedMs);
        count++;
      }
    }
    assert.equal(count, 350);
    assert.deepEqual(
      [...newest.keys()].sort(),
      Array.from({ length: 7 }, (_, index) => simulatedImei(index)),
    );
    assert.ok(listener.connections <= 4, `${listener.connections} connections`);
  });

  test('makes the account and the devices that are missing, once', async (t) => {
    const listener = await startListener(t);
    const argv = ['--devices', '3', '--rate', '3', '--seconds', '0.4', '--email', 'Town@x'];
    await sql`delete from device_state`;
    await sql`delete from device`;
    const first = await watchFeed(sql, () => simulate(listener.port, argv));
    assert.equal(first.result.code, 0, first.result.stderr);
    assert.deepEqual(
      first.rows.map(({ kind }) => kind),
      ['account', 'device', 'device', 'device'],
    );
    const rows = await sql`
      select d.imei from device d join account a on a.world_id = d.world_id
      where a.email = 'town@x' order by d.imei`;
    assert.deepEqual(
      rows.map(({ imei }) => imei),
      [0, 1, 2].map(simulatedImei),
    );
    const second = await watchFeed(sql, () => simulate(listener.port, argv));
    assert.deepEqual([second.result.code, second.rows], [0, []]);
    const other = await simulate(listener.port, [
      '--devices',
      '3',
      '--rate',
      '3',
      '--seconds',
      '1',
      '--email',
      'village@x',
    ]);
    assert.equal(other.code, 1);
    assert.match(other.stderr, /belongs to another owner; use the --email of the earlier simulation/);
    await sql`delete from device_state`;
    await sql`delete from device`;
  });

  test('sends a batch again that an overloaded service did not take', async (t) => {
    const listener = await startListener(t, (batch) => (batch === 2 ? 503 : 200));
    const { code, json, stderr } = await simulate(listener.port, [
      '--devices',
      '2',
      '--rate',
      '20',
      '--seconds',
      '1',
    ]);
    assert.deepEqual([code, json.sent, json.accepted], [0, 20, 20]);
    assert.match(stderr, /answered 503: .*; trying again for 30 s/);
    const all = listener.batches.flatMap(({ points }) =>
      points.map(({ imei, recorded_at }) => `${imei} ${recorded_at}`),
    );
    assert.deepEqual([all.length, new Set(all).size], [20, 20]);
  });

  test('ends with the reason and the summary so far when its points are refused', async (t) => {
    const listener = await startListener(t, (batch) => (batch > 1 ? 400 : 200));
    const { code, stdout, stderr } = await simulate(listener.port, ['--devices', '1', '--rate', '50']);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /answered 400: .*; so far \{"sent":\d+,"accepted":\d+,/);
  });

  test('ends cleanly with the summary when interrupted', async (t) => {
    const interruption = new AbortController();
    const listener = await startListener(t, (batch) => {
      if (batch === 3) interruption.abort();
      return 200;
    });
    const { signal } = interruption;
    const { code, json } = await simulate(listener.port, ['--devices', '5', '--rate', '100'], {
      interrupted: signal,
    });
    const received = listener.batches.reduce((sum, { points }) => sum + points.length, 0);
    assert.deepEqual([code, json.sent, json.accepted], [0, received, received]);
  });

  test('says what to do when there is no service, or none that knows the token', async (t) => {
    const listener = await startListener(t);
    const argv = ['--devices', '1', '--rate', '1', '--seconds', '1'];
    const cases: readonly [number, Record<string, string>, RegExp][] = [
      [
        1,
        {},
        /127\.0\.0\.1:1 does not answer \(connect ECONNREFUSED 127\.0\.0\.1:1\); start the service first: npm start/,
      ],
      [
        listener.port,
        { INGEST_TOKEN: 'a-token-that-is-wrong' },
        /refuses the token; set INGEST_TOKEN to that of the running service/,
      ],
      [listener.port, { INGEST_TOKEN: '' }, /INGEST_TOKEN must be set to that of the running service/],
      [0, {}, /INGEST_PORT is 0; set it to the port that the service logged/],
    ];
    for (const [port, env, message] of cases) {
      const { code, stdout, stderr } = await simulate(port, argv, { env });
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, message);
    }
  });

  const misuse: readonly [string[], RegExp][] = [
    [['--rate', '1'], /--devices is missing/],
    [['--devices', '1'], /--rate is missing/],
    [['--devices', '0', '--rate', '1'], /--devices must be a whole number from 1 to 1000000/],
    [['--devices', '1', '--rate', '0'], /--rate must be a number above 0/],
    [['--devices', '1', '--rate', 'x'], /--rate must be a number/],
    [['--devices', '1', '--rate', '1', '--seconds', '0'], /--seconds must be a number above 0/],
  ];
  for (const [argv, message] of misuse) {
    test(`is not understood with ${argv.join(' ')}`, async () => {
      const { code, stdout, stderr } = await simulate(1, argv);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    });
  }

  test('refuses a rate at which a vehicle would need two points in a moment', async () => {
    const { code, stderr } = await simulate(1, ['--devices', '2', '--rate', '201']);
    assert.equal(code, 1);
    assert.match(stderr, /--rate is more than 100 points a second for each device; raise --devices/);
  });
});

test('made-up IMEIs have fifteen digits, a true check digit and are all different', () => {
  const imeis = [0, 1, 2, 9, 10, 12_345, 999_999].map(simulatedImei);
  assert.equal(new Set(imeis).size, imeis.length);
  for (const imei of imeis) {
    assert.match(imei, /^35\d{13}$/);
    // Luhn, from the left: of fifteen digits every second one is doubled, its digits added.
    const sum = [...imei].reduce((total, digit, place) => {
      const value = place % 2 === 1 ? String(2 * Number(digit)) : digit;
      return total + [...value].reduce((part, each) => part + Number(each), 0);
    }, 0);
    assert.equal(sum % 10, 0, imei);
  }
});
