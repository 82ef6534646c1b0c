import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { simulatedImei } from '../../../src/cli/simulate/simulatedFleet.ts';
import { serve } from '../../support/http/serve.ts';
import { type FleetOptions, type FleetRun, fleetDatabase } from '../runFleet.ts';

const TOKEN = 'token-of-the-test';

const database = fleetDatabase();

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
  const { port } = await serve(t, server);
  return Object.assign(listener, { port });
}

/** How many different points a listener has taken. */
const received = ({ batches }: Listener): number =>
  new Set(batches.flatMap(({ points }) => points.map(({ imei, recorded_at }) => `${imei} ${recorded_at}`)))
    .size;

const envOf = (port: number) => ({
  INGEST_PORT: String(port),
  INGEST_TOKEN: `${TOKEN},another-token-of-the-test`,
});

/** Runs the command with these words. */
const simulate = (port: number, words: string, options: FleetOptions = {}): Promise<FleetRun> =>
  database.fleet(`simulate ${words}`, { ...options, env: envOf(port) });

const deleteDevices = () => database.sql`
  with state as (delete from device_state) delete from device`;

describe('simulate', () => {
  test('sends the points of so many seconds, in order for each vehicle, none from the future', async (t) => {
    const listener = await startListener(t);
    const { code, json, stderr } = await simulate(listener.port, '--devices 7 --rate 350 --seconds 1');
    assert.equal(code, 0, stderr);
    const { sent, accepted, duplicates, late, rejected, seconds } = json;
    assert.deepEqual([sent, accepted, duplicates, late, rejected], [350, 350, 0, 0, 0]);
    assert.ok(seconds >= 1);
    const newest = new Map<string, number>();
    for (const { receivedMs, points } of listener.batches) {
      assert.ok(points.length <= 1_000);
      for (const { imei, recorded_at } of points) {
        const recordedMs = Date.parse(recorded_at);
        assert.ok(recordedMs > (newest.get(imei) ?? 0) && recordedMs <= receivedMs);
        newest.set(imei, recordedMs);
      }
    }
    assert.equal(received(listener), 350);
    assert.deepEqual(
      [...newest.keys()].sort(),
      Array.from({ length: 7 }, (_, index) => simulatedImei(index)),
    );
    assert.ok(listener.connections <= 4, `${listener.connections} connections`);
  });

  test('makes the account and the devices that are missing, once', async (t) => {
    const { port } = await startListener(t);
    const words = 'simulate --devices 3 --rate 3 --seconds 0.4 --email';
    const env = envOf(port);
    await deleteDevices();
    const first = await database.watch(`${words} Town@x`, { env });
    assert.equal(first.result.code, 0, first.result.stderr);
    assert.deepEqual(
      first.rows.map(({ kind }) => kind),
      ['account', 'device', 'device', 'device'],
    );
    const rows = await database.sql<{ imei: string }[]>`
      select d.imei from device d join account a on a.world_id = d.world_id
      where a.email = 'town@x' order by d.imei`;
    assert.deepEqual(
      rows.map(({ imei }) => imei),
      [0, 1, 2].map(simulatedImei),
    );
    const second = await database.watch(`${words} Town@x`, { env });
    assert.deepEqual([second.result.code, second.rows], [0, []]);
    const other = /belongs to another owner; use the --email of the earlier simulation/;
    await database.refuses(`${words} village@x`, 1, other, { env });
    await deleteDevices();
  });

  test('sends a batch again that an overloaded service did not take', async (t) => {
    const listener = await startListener(t, (batch) => (batch === 2 ? 503 : 200));
    const { code, json, stderr } = await simulate(listener.port, '--devices 2 --rate 20 --seconds 1');
    assert.deepEqual([code, json.sent, json.accepted], [0, 20, 20]);
    assert.match(stderr, /answered 503: .*; trying again for 30 s/);
    assert.equal(received(listener), 20);
  });

  test('ends with the reason and the summary so far when its points are refused', async (t) => {
    const listener = await startListener(t, (batch) => (batch > 1 ? 400 : 200));
    const message = /answered 400: .*; so far \{"sent":\d+,"accepted":\d+,/;
    await database.refuses('simulate --devices 1 --rate 50', 1, message, { env: envOf(listener.port) });
  });

  test('ends with the summary when it is interrupted', async (t) => {
    const interruption = new AbortController();
    const listener = await startListener(t, (batch) => {
      if (batch === 3) interruption.abort();
      return 200;
    });
    const { signal } = interruption;
    const { code, json } = await simulate(listener.port, '--devices 5 --rate 100', { interrupted: signal });
    assert.deepEqual([code, json.sent, json.accepted], [0, received(listener), received(listener)]);
  });

  test('says what to do when there is no service, or none that takes its token', async (t) => {
    const { port } = await startListener(t);
    for (const [at, env, message] of [
      [
        1,
        {},
        /127\.0\.0\.1:1 does not answer \(connect ECONNREFUSED .*\); start the service first: npm start/,
      ],
      [
        port,
        { INGEST_TOKEN: 'a-token-that-is-wrong' },
        /denies the token; set INGEST_TOKEN to that of the running/,
      ],
      [port, { INGEST_TOKEN: '' }, /INGEST_TOKEN must be set to that of the running service/],
      [0, {}, /INGEST_PORT is 0; set it to the port that the service logged/],
    ] as const)
      await database.refuses('simulate --devices 1 --rate 1 --seconds 1', 1, message, {
        env: { ...envOf(at), ...env },
      });
  });

  test('refuses options that are missing or out of range', async () => {
    for (const [words, code, message] of [
      ['--rate 1', 2, /--devices is missing/],
      ['--devices 0 --rate 1', 2, /--devices must be a whole number from 1 to 1000000/],
      ['--devices 1 --rate x', 2, /--rate must be a number/],
      ['--devices 1 --rate 1 --seconds 0', 2, /--seconds must be a number above 0/],
      [
        '--devices 2 --rate 201',
        1,
        /--rate is more than 100 points a second for each device; raise --devices/,
      ],
    ] as const)
      await database.refuses(`simulate ${words}`, code, message, { env: envOf(1) });
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
