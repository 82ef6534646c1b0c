import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DAY_MS } from '../../src/lib/time.ts';
import { callApi } from '../support/http/application.ts';
import { gist } from '../support/http/areas.ts';
import { ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';

const IMEIS = ['350000000000001', '350000000000002', '350000000000003'] as const;
const DEPOT = { name: 'Depot', type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 500 };
const IN = { lat: 41.9, lng: 12.5 };
const OUT = { lat: 42.5, lng: 12.5 };
const MINUTE_MS = 60_000;
/** A whole minute, two days ago. */
const START_MS = Math.floor((Date.now() - 2 * DAY_MS) / MINUTE_MS) * MINUTE_MS;

const at = (minutes: number): string => new Date(START_MS + minutes * MINUTE_MS).toISOString();
const point = (imei: string, minutes: number, { lat, lng }: { lat: number; lng: number }) => ({
  imei,
  recorded_at: at(minutes),
  latitude: lat,
  longitude: lng,
});

const owner = ownerPod({ devices: IMEIS.map((imei) => ({ imei })) }, async ({ pod }) => {
  const [van, parked, other] = IMEIS;
  await pod.points([
    // In for 10 minutes, out, in for 2 minutes, out.
    ...[10, 15, 20].map((minute) => point(van, minute, IN)),
    point(van, 21, OUT),
    ...[30, 32].map((minute) => point(van, minute, IN)),
    point(van, 33, OUT),
    // In since before, out at minute 40.
    ...[-20, -10, -1, 5, 35].map((minute) => point(parked, minute, IN)),
    point(parked, 40, OUT),
    // Never near.
    ...[1, 2, 3].map((minute) => point(other, minute, OUT)),
  ]);
  // Late, so it counts for nothing.
  await pod.points([point(parked, -11, OUT)]);
});

const post = (body: unknown, key = owner.key): Promise<Reply> =>
  callApi(owner.pod, 'POST', '/v3/areas/backtest', { body, key });
const WINDOW = { from: at(0), to: at(60) };

const reported = (item: { events: { device: string; event: string; timestamp: string }[] }) =>
  item.events.map(({ device, event, timestamp }) => [
    device,
    event,
    (Date.parse(timestamp) - START_MS) / MINUTE_MS,
  ]);

describe('a draft', () => {
  test('reports the entries and exits that it would have had, by each minimum stay', async () => {
    const [van, parked] = IMEIS;
    const { status, body } = await post({ area: DEPOT, ...WINDOW, dwell_seconds: [0, 300, 86_400, 0] });
    assert.equal(status, 200);
    const [atOnce, five, day, again] = body.data;
    assert.deepEqual(again, atOnce);
    assert.deepEqual(reported(atOnce), [
      [van, 'entry', 10],
      [van, 'exit', 21],
      [van, 'entry', 30],
      [van, 'exit', 33],
      [parked, 'exit', 40],
    ]);
    const first = { area_id: null, device: van, event: 'entry', position: IN, timestamp: at(10) };
    assert.deepEqual(atOnce.events[0], first);
    const { events: _, ...counts } = atOnce;
    const inside_seconds = (11 + 3 + 40) * 60;
    assert.deepEqual(counts, { dwell_seconds: 0, entries: 2, exits: 3, devices: 2, inside_seconds });
    assert.deepEqual(reported(five), [
      [van, 'entry', 15],
      [van, 'exit', 21],
      [parked, 'exit', 40],
    ]);
    assert.deepEqual([day.entries, day.exits, day.devices, day.inside_seconds], [0, 0, 0, 0]);
    assert.deepEqual(body.meta.window, WINDOW);
    assert.deepEqual([body.meta.points, body.meta.devices], [13, 3]);
    assert.deepEqual(body.meta.notes, []);
  });

  test('has the minimum stay of its body, and the warnings of POST', async () => {
    const points = [-1, 1].flatMap((y) =>
      [-1, 1].map((x) => ({ lat: IN.lat + y * 1e-5, lng: IN.lng + x * y * 1e-5 })),
    );
    const tiny = { name: 'Gate', type: 'polygon', points, dwell_seconds: 600 };
    const { body } = await post({ area: tiny, ...WINDOW });
    assert.equal(body.data.length, 1);
    assert.deepEqual(reported(body.data[0]), [
      [IMEIS[0], 'entry', 20],
      [IMEIS[0], 'exit', 21],
      [IMEIS[1], 'exit', 40],
    ]);
    assert.equal(body.meta.warnings[0].code, 'warnVerySmallArea');
  });

  test('counts who came in before the window by what is left of the minimum stay', async () => {
    const window = { from: at(-15), to: at(60), devices: [IMEIS[1]] };
    const { body } = await post({ area: DEPOT, ...window, dwell_seconds: [0, 600, 1_200, 1_500, 3_600] });
    const exit = [IMEIS[1], 'exit', 40];
    const since = (minutes: number) => [[IMEIS[1], 'entry', minutes], exit];
    assert.deepEqual(body.data.map(reported), [[exit], since(-10), since(5), since(5), []]);
    assert.deepEqual(
      body.data.map((item: { inside_seconds: number }) => item.inside_seconds),
      [3_300, 3_300, 3_300, 3_300, 0],
    );
    // The point at -11 is exactly the minimum stay before the last one, but late.
    const later = await post({ area: DEPOT, ...WINDOW, devices: [IMEIS[1]], dwell_seconds: 600 });
    assert.deepEqual(later.body.data.map(reported), [[exit]]);
  });

  test('is tried on the devices that are named; unknown ones and those of others have no points', async () => {
    await owner.admin.account('stranger@example.com');
    const { key } = await owner.admin.key('stranger@example.com');
    const devices = [IMEIS[0], '359999999999999'];
    const { body } = await post({ area: DEPOT, devices, ...WINDOW });
    assert.deepEqual([body.meta.devices, body.data[0].entries], [1, 2]);
    const { body: theirs } = await post({ area: DEPOT, devices, ...WINDOW }, key);
    assert.deepEqual([theirs.meta.points, theirs.data[0].entries], [0, 0]);
  });

  test('in an empty window has nothing', async () => {
    const { body } = await post({ area: DEPOT, from: at(60), to: at(0) });
    assert.deepEqual([body.meta.points, body.data[0].exits], [0, 0]);
  });
});

describe('an area that exists', () => {
  test('is compared with its recorded events', async () => {
    const { body: made } = await callApi(owner.pod, 'POST', '/v3/areas', { body: DEPOT, key: owner.key });
    const { id } = made.data;
    await owner.pod.points([
      point(IMEIS[2], 100, IN),
      point(IMEIS[2], 110, IN),
      point(IMEIS[2], 120, OUT),
      point(IMEIS[2], 130, IN),
    ]);
    const window = { from: at(90), to: at(180) };
    const { body } = await post({ area_id: id, ...window });
    assert.deepEqual(body.data[0].against, { same: 3, new: 0, gone: 0 });
    assert.equal(body.data[0].events[0].area_id, id);
    const { body: recorded } = await callApi(owner.pod, 'GET', `/v3/areas/${id}/events`, { key: owner.key });
    assert.deepEqual(
      recorded.data.map(({ id: _, ...event }: { id: number }) => event).reverse(),
      body.data[0].events,
    );
    const { body: longer } = await post({ area_id: id, ...window, dwell_seconds: 600 });
    assert.deepEqual(longer.data[0].against, { same: 1, new: 1, gone: 2 });
    const { body: earlier } = await post({ area_id: id, ...WINDOW });
    assert.deepEqual(earlier.data[0].against, { same: 0, new: 5, gone: 0 });
    assert.deepEqual(
      earlier.meta.notes.map(({ code }: { code: string }) => code),
      ['area_did_not_exist'],
    );
    await callApi(owner.pod, 'PATCH', `/v3/areas/${id}`, {
      body: { name: 'Yard', color: '#000000' },
      key: owner.key,
    });
    const { body: renamed } = await post({ area_id: id, ...WINDOW });
    assert.deepEqual(renamed.meta.notes, earlier.meta.notes, 'a new name changes no event');
    await callApi(owner.pod, 'PATCH', `/v3/areas/${id}`, { body: { dwell_seconds: 5 }, key: owner.key });
    const { body: changed } = await post({ area_id: id, ...WINDOW });
    assert.deepEqual(changed.meta.notes.at(-1).code, 'area_changed');
  });

  test('of a stranger is a 404 like a missing one', async () => {
    const { body: made } = await callApi(owner.pod, 'POST', '/v3/areas', { body: DEPOT, key: owner.key });
    await owner.admin.account('foreigner@example.com');
    const { key } = await owner.admin.key('foreigner@example.com');
    const foreign = await post({ area_id: made.data.id, ...WINDOW }, key);
    assert.equal(gist(foreign), '404 NOT_FOUND');
    assert.equal(foreign.text, (await post({ area_id: 999_999, ...WINDOW }, key)).text);
  });
});

describe('an error', () => {
  const invalid = { ...DEPOT, radius_m: 1 };
  const draft = { area: DEPOT, ...WINDOW };
  const WRONG: readonly [what: string, body: unknown, outcome: string][] = [
    ['a list', [], 'null INVALID_BODY'],
    ['nothing but a window', WINDOW, 'area REQUIRED'],
    ['area and area_id', { ...draft, area_id: 1 }, 'area_id INVALID'],
    ['an area_id that is text', { area_id: '1', ...WINDOW }, 'area_id INVALID'],
    ['an area_id of 0', { area_id: 0, ...WINDOW }, 'area_id INVALID'],
    ['an area that is text', { area: 'Depot', ...WINDOW }, 'null INVALID_BODY'],
    ['all at once', { area: invalid }, 'radius_m OUT_OF_RANGE, from REQUIRED, to REQUIRED'],
    ['times that are none', { ...draft, from: 'May', to: 5 }, 'from INVALID, to INVALID'],
    ['32 days', { ...draft, from: '2026-01-01', to: '2026-02-02' }, 'from OUT_OF_RANGE'],
    ['no devices', { ...draft, devices: [] }, 'devices INVALID'],
    ['a device that is no IMEI', { ...draft, devices: ['van'] }, 'devices INVALID'],
    ['too many devices', { ...draft, devices: Array(10_001).fill(IMEIS[0]) }, 'devices LIMIT_REACHED'],
    ['half a second', { ...draft, dwell_seconds: 0.5 }, 'dwell_seconds OUT_OF_RANGE'],
    ['no dwell', { ...draft, dwell_seconds: [] }, 'dwell_seconds OUT_OF_RANGE'],
    ['a day and a second', { ...draft, dwell_seconds: [86_401] }, 'dwell_seconds OUT_OF_RANGE'],
    ['eleven dwells', { ...draft, dwell_seconds: Array(11).fill(1) }, 'dwell_seconds LIMIT_REACHED'],
  ];
  test('names every invalid field', async () => {
    for (const [what, body, outcome] of WRONG) assert.equal(gist(await post(body)), `422 ${outcome}`, what);
  });

  test('of an invalid draft has the details of POST /areas', async () => {
    const area = { type: 'polygon', color: 'red', points: [IN, OUT], dwell_seconds: -1 };
    const { body: posted } = await callApi(owner.pod, 'POST', '/v3/areas', { body: area, key: owner.key });
    const { body: tried } = await post({ area, ...WINDOW });
    assert.deepEqual(tried, posted);
  });

  test('of a key that lacks one of the two permissions is a 403', async () => {
    for (const scopes of ['read_areas', 'read_history']) {
      const { key } = await owner.admin.key('owner@example.com', { scopes });
      assert.equal(gist(await post({ area: DEPOT, ...WINDOW }, key)), '403 INSUFFICIENT_SCOPE');
    }
    const { key } = await owner.admin.key('owner@example.com', { scopes: 'read_areas,read_history' });
    assert.equal((await post({ area: DEPOT, ...WINDOW }, key)).status, 200);
  });
});

describe('a plan', () => {
  test('cuts the window, says so, and a device that was inside before is still known to be', async () => {
    await owner.admin.account('basic@example.com');
    await owner.admin.run('account:update', '--email', 'basic@example.com', '--plan', 'basic');
    const imei = '350000000000010';
    await owner.admin.device('basic@example.com', imei);
    const { key } = await owner.admin.key('basic@example.com');
    const days = (n: number): number => (-n * DAY_MS) / MINUTE_MS;
    await owner.pod.points([point(imei, days(33), IN), point(imei, days(10), IN), point(imei, days(9), OUT)]);
    const { body } = await post({ area: DEPOT, from: at(days(31)), to: at(days(0)) }, key);
    assert.deepEqual(reported(body.data[0]), [[imei, 'exit', days(9)]]);
    const [trimmed] = body.meta.notes;
    assert.equal(trimmed.code, 'history_trimmed');
    assert.equal(trimmed.at, body.meta.window.from);
    assert.ok(Math.abs(Date.now() - 30 * DAY_MS - Date.parse(trimmed.at)) < MINUTE_MS);
  });
});
