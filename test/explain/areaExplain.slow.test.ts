import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DAY_MS, HOUR_MS } from '../../src/lib/time.ts';
import { packPoints } from '../support/history/packPoints.ts';
import { callApi } from '../support/http/application.ts';
import { gist } from '../support/http/areas.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { Stage } from './stage.ts';

const START_MS = Math.floor((Date.now() - 2 * DAY_MS) / HOUR_MS) * HOUR_MS;
const FOREIGN_IMEI = '350000000000099';
const IN = 0;
const OUT = 5_000;

const owner = ownerPod(
  { devices: [0, 1, 2, 3, 4, 5].map((n) => ({ imei: String(350_000_000_000_000 + n) })) },
  async ({ admin }) => {
    await admin.account('other@example.com');
    await admin.device('other@example.com', FOREIGN_IMEI);
  },
);
const stage = (n: number): Stage => new Stage(owner, n, START_MS);
const gistOf = async (path: string, key = owner.key): Promise<string> =>
  gist(await callApi(owner.pod, 'GET', path, { key }));

describe('what cannot be explained', () => {
  test('is refused in the order of all routes: form, then limits, then lookup', async () => {
    const told = stage(0);
    const id = await told.area();
    const explain = (query: string, areaId: number | string = id) =>
      told.api.get(`/${areaId}/explain${query === '' ? '' : `?${query}`}`);
    const device = `device=${told.imei}`;
    const long = 'from=2026-01-01&to=2026-03-01';
    const cases: readonly (readonly [string, (number | string)?])[] = [
      ['', 'x'],
      ['', 99],
      ['device=', 99],
      ['device=12&from=never', 99],
      [`${device}&from=never&steps=maybe`, 99],
      [`${device}&steps=maybe&${long}`, 99],
      [`${device}&${long}`, 99],
      [`device=${FOREIGN_IMEI}`, 99],
      [`device=${FOREIGN_IMEI}`],
      ['device=350000000000077'],
      [`${device}&${device}`],
    ];
    const answers = [];
    for (const [query, areaId] of cases) {
      const reply = await explain(query, areaId);
      answers.push(`${gist(reply)}: ${reply.body.error.message}`);
    }
    assert.deepEqual(answers, [
      '400 BAD_REQUEST: the id must be a positive integer',
      '400 IMEI_REQUIRED: an IMEI is required',
      '400 IMEI_REQUIRED: an IMEI is required',
      '400 BAD_REQUEST: an IMEI has 14 to 17 digits',
      '400 BAD_REQUEST: from and to must be ISO 8601 times',
      '400 BAD_REQUEST: steps must be one of true, false',
      '400 BAD_REQUEST: from and to are 28 days more than 31 days apart; narrow from or to',
      '404 NOT_FOUND: not found',
      '404 DEVICE_NOT_FOUND: no device with this IMEI',
      '404 DEVICE_NOT_FOUND: no device with this IMEI',
      '400 BAD_REQUEST: a query parameter is given twice',
    ]);
  });

  test('is of another account: as if it were not there', async () => {
    const told = stage(0);
    const id = await told.area();
    const { key } = await owner.admin.key('other@example.com');
    assert.equal(await gistOf(`/v3/areas/${id}/explain?device=${FOREIGN_IMEI}`, key), '404 NOT_FOUND');
  });

  test('needs both permissions, and is of v3', async () => {
    const id = await stage(0).area();
    for (const [scopes, expected] of [
      ['read_areas', '403 INSUFFICIENT_SCOPE'],
      ['read_history', '403 INSUFFICIENT_SCOPE'],
      ['read_areas,read_history', '200'],
    ] as const) {
      const { key } = await owner.admin.key('owner@example.com', { scopes });
      assert.equal(await gistOf(`/v3/areas/${id}/explain?device=${stage(0).imei}`, key), expected);
    }
    assert.equal(await gistOf(`/v2/areas/${id}/explain?device=${stage(0).imei}`), '404 NOT_FOUND');
  });
});

describe('an explanation', () => {
  test('has every point with what became of it, when that is asked for', async () => {
    const told = stage(2);
    const id = await told.area({ dwell_seconds: 60 });
    const before = Date.now();
    await told.send([0, OUT], [60, IN], [90, OUT], [120, 400], [180, 400]);
    await told.send([30, IN], [200, OUT]);
    const { body } = await told.ask(id, 0, 7_200, '&steps=true');
    const { steps, closest, visits, gaps, notes } = body.data;
    assert.deepEqual(
      steps.map(({ recorded_at, late, inside, decision }: Record<string, string>) => [
        (Date.parse(recorded_at as string) - START_MS) / 1_000,
        ...[late, inside, decision],
      ]),
      [
        [0, false, false, 'outside'],
        [30, true, true, 'late'],
        [60, false, true, 'pending'],
        [90, false, false, 'passed'],
        [120, false, true, 'pending'],
        [180, false, true, 'entry'],
        [200, false, false, 'exit'],
      ],
    );
    for (const { received_at: receivedAt } of steps) {
      assert.ok(Math.abs(Date.parse(receivedAt) - before) < 60_000);
    }
    const [, , inside] = steps;
    assert.ok(Math.abs(inside.distance_m + 500) < 1e-6);
    assert.deepEqual(closest, { distance_m: inside.distance_m, at: told.at(60) });
    const ids = await told.eventIds(id);
    const passed = { first_inside_at: told.at(60), last_inside_at: told.at(60), points: 1, seconds: 0 };
    const stayed = { first_inside_at: told.at(120), last_inside_at: told.at(180), points: 2, seconds: 60 };
    assert.deepEqual(
      visits.map((visit: { deepest_m: number }) => ({ ...visit, deepest_m: Math.round(visit.deepest_m) })),
      [
        { ...passed, deepest_m: 500, outcome: 'too_short', event_ids: [] },
        { ...stayed, deepest_m: 100, outcome: 'entry_and_exit', event_ids: ids },
      ],
    );
    assert.equal(ids.length, 2);
    assert.deepEqual(gaps, []);
    assert.deepEqual(notes, [
      {
        code: 'late_points_ignored',
        message:
          '1 point came after newer ones of the device and was stored, not evaluated; 1 of them inside',
        at: told.at(30),
      },
    ]);
    assert.deepEqual(body.meta, { window: { from: told.at(0), to: told.at(7_200) }, points: 7 });
    const plain = await told.ask(id);
    const { steps: _, ...rest } = body.data;
    assert.deepEqual(plain.body.data, rest);
  });

  test('is the same to the byte when the points of its day are packed', async () => {
    const told = new Stage(owner, 4, START_MS - 10 * DAY_MS);
    const id = await told.area({ dwell_seconds: 60 });
    await told.send([0, OUT], [60, IN], [90, OUT], [120, 400], [180, 400]);
    await told.send([30, IN], [1_200, OUT]);
    const ask = () => told.ask(id, 70, 7_200, '&steps=true');
    const { text } = await ask();
    assert.equal(JSON.parse(text).data.visits[1].outcome, 'entry_and_exit');
    const { points } = await packPoints(owner.sql);
    assert.ok(points >= 7);
    assert.equal((await ask()).text, text);
  });

  test('of a stay without a minimum, of which the window has only the end, knows its last point inside', async () => {
    const told = stage(5);
    const id = await told.area();
    await told.send([0, OUT], [60, IN], [180, IN], [300, OUT]);
    const { body } = await told.ask(id, 240);
    const [{ first_inside_at, last_inside_at, points, seconds, outcome }] = body.data.visits;
    assert.deepEqual(
      [first_inside_at, last_inside_at, points, seconds, outcome],
      [told.at(60), told.at(180), 0, 120, 'entry_and_exit'],
    );
  });

  test('without a window is of the 31 days up to now', async () => {
    const told = stage(2);
    const id = await told.area();
    const { body } = await told.api.get(`/${id}/explain?device=${told.imei}&from=&to=`);
    const { from, to } = body.meta.window;
    assert.equal(Date.parse(to) - Date.parse(from), 31 * DAY_MS);
    assert.ok(Math.abs(Date.parse(to) - Date.now()) < 60_000);
    const past = await told.api.get(`/${id}/explain?device=${told.imei}&to=${told.at(0)}`);
    assert.equal(Date.parse(past.body.meta.window.from), START_MS - 31 * DAY_MS);
    const empty = await told.ask(id, 100, 0);
    assert.deepEqual([empty.status, empty.body.data.visits, empty.body.meta.points], [200, [], 0]);
  });

  test('of a long window comes in pieces, whole, and leaves room for others when it is not read', async () => {
    const told = stage(3);
    const id = await told.area();
    await owner.sql`
      insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, late)
      select d.id, to_timestamp(${START_MS / 1_000}::float8 + n), 80, 0, 0, 0, 0, 0, n % 2 = 0
      from device d, generate_series(0, 9999) n where imei = ${told.imei}`;
    for (let n = 0; n < 5; n++) {
      const caller = new AbortController();
      const url = `${owner.pod.api}/api/v3/areas/${id}/explain?device=${told.imei}&from=${told.at(0)}&to=${told.at(10_000)}&steps=true`;
      const response = await fetch(url, { headers: { 'X-API-Key': owner.key }, signal: caller.signal });
      assert.equal(response.status, 200);
      caller.abort();
    }
    const { body, text } = await told.ask(id, 0, 10_000, '&steps=true');
    assert.ok(text.length > 1_000_000);
    assert.equal(body.data.steps.length, 10_000);
    assert.equal(body.data.steps.at(-1).recorded_at, told.at(9_999));
    assert.equal(body.data.steps[5].received_at, null);
    assert.match(body.data.notes[0].message, /^5000 points came after newer ones/);
  });
});
