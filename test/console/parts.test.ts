import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { stripTypeScriptTypes } from 'node:module';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SCOPES } from '../../src/access/scopes.ts';
import { filtersIn, passing } from '../../src/console/page/filters.ts';
import type { KnownDevice } from '../../src/console/page/fleet.ts';
import { agoText, dueText } from '../../src/console/page/format.ts';
import { counted, curlOf, duration, fetchOf } from '../../src/console/page/parts.ts';
import { StreamMessages } from '../../src/console/page/stream.ts';
import type { Delivery, Explanation, FleetEvent } from '../../src/console/page/types.ts';
import { percent } from '../../src/console/page/views/areas/areas.ts';
import { queueOf, reasonOf } from '../../src/console/page/views/deliveries.ts';
import { EVENT_TYPES as EVENT_FILTERS } from '../../src/console/page/views/eventFilters.ts';
import { explainPath, timeLine } from '../../src/console/page/views/explanation.ts';
import { SCOPES as OFFERED_SCOPES } from '../../src/console/page/views/keys.ts';
import { offersOf } from '../../src/console/page/views/vehicleField.ts';
import { healthOf } from '../../src/console/page/views/webhooks.ts';
import { EVENT_TYPES } from '../../src/events/fleetEvent.ts';
import { formatDuration } from '../../src/lib/time.ts';
import { anyCharacter } from '../support/http/anyCharacter.ts';
import { runs } from '../support/torture.ts';

const device = (imei: string, name: string | null, plate: string | null = null): KnownDevice => ({
  imei,
  name,
  plate,
  status: 'parked',
  location: null,
  ignition: null,
  groups: [],
  version: 0,
});

describe('what the page offers', () => {
  test('are the scopes that a key may have', () => assert.deepEqual(OFFERED_SCOPES, SCOPES));

  test('are the types of events, and of those of areas each direction', () => {
    const offered = Object.keys(EVENT_FILTERS);
    assert.deepEqual(offered.sort(), [...EVENT_TYPES, 'geofence_enter', 'geofence_exit'].sort());
  });
});

describe('the search', () => {
  const all = [
    device('350000000000002', 'Van 12', 'GA 731 KL'),
    device('350000000000001', 'bus'),
    device('1', null, 'X'),
  ];
  const found = (text: string) => passing({ ...filtersIn(''), text }, all).map(({ imei }) => imei);
  test('finds a part of a name, a plate or an IMEI, whatever its case and blanks', () => {
    assert.deepEqual(found('VAN'), ['350000000000002']);
    assert.deepEqual(found('ga731'), ['350000000000002']);
    assert.deepEqual(found('0001'), ['350000000000001']);
    assert.deepEqual(found('nobody'), []);
  });
});

describe('vehicles that a field offers', () => {
  const twins = ['350000000000012', '350000000010012', '350000000000029'];
  const all = [
    device('350000000000001', 'Van 1', 'GA 731 KL'),
    device('350000000000002', 'Van 2'),
    device('350000000000003', 'Bus', 'RM 1'),
    device('350000000000004', 'Bus', 'RM 2'),
    device('350000000000005', null, 'RM 3'),
    ...twins.map((imei) => device(imei, 'Tram')),
  ];
  test('are named so that each is told from the others, without their IMEIs', () => {
    const offers = offersOf(all, false);
    const texts = offers.map(({ text }) => text);
    const trams = ['Tram, …000012', 'Tram, …010012', 'Tram, …0029'];
    assert.deepEqual(texts, ['Van 1', 'Van 2', 'Bus, RM 1', 'Bus, RM 2', 'RM 3', ...trams]);
    assert.equal(offers[0]?.detail, 'GA 731 KL');
    assert.doesNotMatch(offers.map(({ detail }) => detail).join(), /\d{8}/);
  });
  test('have their IMEIs beside them once these are shown', () => {
    const details = offersOf(all, true).map(({ detail }) => detail);
    assert.equal(details[0], 'GA 731 KL, 350000000000001');
    assert.ok(all.every(({ imei }, n) => details[n]?.endsWith(imei)));
  });
});

test('a webhook that fails is told from one that works and from one that is paused, in words and by its sign', () => {
  const [at, next_attempt_at] = ['2026-03-02T02:10:00.000Z', null];
  const failing = { since: at, attempts: 14, next_attempt_at };
  const paused = { reason: 'failing', since: at } as const;
  const all = [
    { active: true, paused: null, failing: null },
    { active: true, paused: null, failing },
    { active: true, paused, failing },
    { active: false, paused: null, failing },
  ].map(healthOf);
  assert.deepEqual(
    all.map(([, text]) => text),
    ['active', 'failing', 'paused by the service', 'paused'],
  );
  assert.equal(new Set(all.map(([sign]) => sign)).size, all.length);
});

test('what is to come is told to the minute, and within the last one to the second', () => {
  const texts = [-3, 0.2, 1, 59.4, 60, 119, 125 * 60].map(dueText);
  assert.deepEqual(texts, ['now', 'now', 'in 1 s', 'in 59 s', 'in 1 min', 'in 2 min', 'in 2 h 5 min']);
});

test('a share is told in whole per cent, and less than one as what it is', () => {
  assert.deepEqual([1, 0.125, 0.01, 0.0021, 0].map(percent), ['100 %', '13 %', '1 %', '0.2 %', '0 %']);
});

describe('a stream in pieces', () => {
  test('gives the same messages wherever it is cut', () => {
    const text =
      'event: device\nid: a\ndata: {"x":"ü: 1"}\n\nretry: 500\n\nevent: heartbeat\nid: b\ndata: {}\n\nrest';
    const whole = [...new StreamMessages().take(text)];
    assert.deepEqual(whole, [
      { event: 'device', id: 'a', data: '{"x":"ü: 1"}' },
      { event: 'heartbeat', id: 'b', data: '{}' },
    ]);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length)), (cuts) => {
        const messages = new StreamMessages();
        const edges = [0, ...cuts.sort((a, b) => a - b), text.length];
        const pieces = edges.slice(1).map((end, index) => text.slice(edges[index], end));
        assert.deepEqual(
          pieces.flatMap((piece) => [...messages.take(piece)]),
          whole,
        );
      }),
    );
  });
});

test('a call as curl reaches a shell as it is, whatever its body has', () => {
  const name = fc.string({ unit: anyCharacter }).filter((text) => !text.includes('\0'));
  const names = fc.sample(name, { seed: 1, numRuns: runs(200) });
  const lines = names.map((name) =>
    curlOf('http://127.0.0.1:1', {
      method: 'POST',
      path: "/api/v1/x?a='1",
      body: { name },
      idempotencyKey: "a'b",
    }),
  );
  // One shell for all of them: to start one takes longer than all its calls.
  const { stdout } = spawnSync('sh', ['-s'], {
    input: `curl() { printf '%s\\n' "$@"; }\n${lines.join('\n')}\n`,
    encoding: 'utf8',
    env: { SESSION: 'fs_x' },
  });
  const given = (name: string) => [
    '-s',
    '-X',
    'POST',
    '-H',
    'Authorization: Bearer fs_x',
    '-H',
    "Idempotency-Key: a'b",
    '-H',
    'Content-Type: application/json',
    '-d',
    JSON.stringify({ name }),
    "http://127.0.0.1:1/api/v1/x?a='1",
  ];
  assert.deepEqual(stdout.split('\n').slice(0, -1), names.flatMap(given));
});

test('a call in TypeScript sends what it says, whatever its body has', async (t) => {
  t.mock.method(process, 'emitWarning', () => undefined); // that Node's function may change
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: anyCharacter }), async (name) => {
      const call = { method: 'PUT', path: "/api/v1/x?a='1", body: { name }, idempotencyKey: `a"'${name}` };
      const code = stripTypeScriptTypes(fetchOf('http://127.0.0.1:1', call));
      const sent: unknown[] = [];
      const run = new Function('fetch', 'SESSION', `return (async () => { ${code}; return data; })()`);
      const answer = (...asked: unknown[]) => {
        sent.push(asked);
        return Promise.resolve({ json: () => Promise.resolve({ data: 'an answer' }) });
      };
      assert.equal(await run(answer, 'fs_x'), 'an answer');
      const headers = {
        Authorization: 'Bearer fs_x',
        'Idempotency-Key': call.idempotencyKey,
        'Content-Type': 'application/json',
      };
      const options = { method: 'PUT', headers, body: JSON.stringify({ name }) };
      assert.deepEqual(sent, [["http://127.0.0.1:1/api/v1/x?a='1", options]]);
    }),
    { numRuns: 50 },
  );
  assert.doesNotThrow(
    () =>
      new Function(
        `async () => { ${stripTypeScriptTypes(fetchOf('', { method: 'GET', path: '/api/v1/stream' }))} }`,
      ),
  );
});

test('an event of an area is explained from before its device came in; others are not', () => {
  const event: FleetEvent = {
    id: 1,
    type: 'geofence',
    message: '',
    device_imei: '35',
    data: {
      position: { lat: 0, lng: 0 },
      areaId: 7,
      areaName: 'Depot',
      event: 'entry',
      enteredAt: '2026-03-02T08:10:00.000Z',
      dwellSeconds: 0,
    },
    read: false,
    occurred_at: '2026-03-02T09:00:00.000Z',
  };
  assert.equal(
    explainPath(event),
    '/api/v1/areas/7/explain?device=35&from=2026-03-02T08%3A00%3A00.000Z&to=2026-03-02T09%3A01%3A00.000Z',
  );
  assert.equal(
    explainPath({ ...event, type: 'alarm', data: { position: { lat: 0, lng: 0 }, alarm: 'sos' } }),
    null,
  );
});

test('a delivery says what came of its attempts', () => {
  const base = { attempts: 2, last_status_code: null, last_error: null } as Delivery;
  for (const [change, expected] of [
    [{ attempts: 0 }, 'not sent yet'],
    [{ last_status_code: 503, last_error: 'http_503' }, '2 attempts: the receiver answered 503'],
    [{ attempts: 1, last_error: 'url_unsafe' }, '1 attempt: the address of the URL is not a public one'],
    [{ last_error: 'timed_out' }, '2 attempts: timed out'],
    [{ last_error: 'interrupted' }, '2 attempts: broken off by the service, which tries again'],
  ] as const)
    assert.equal(reasonOf({ ...base, ...change }), expected);
});

test('of a queue the page says how many wait, since when, and when the next is tried', () => {
  const made = (status: Delivery['status'], second: number, next: number | null): Delivery => ({
    ...({ attempts: 1 } as Delivery),
    status,
    created_at: new Date(second * 1_000).toISOString(),
    next_attempt_at: next === null ? null : new Date(next * 1_000).toISOString(),
  });
  const at = (second: number): string => new Date(second * 1_000).toISOString();
  const lists = [[made('pending', 30, 31), made('pending', 20, null)], [made('failed', 10, 90)], []];
  const queue = { waiting: 3, failing: 1, oldestAt: at(10), nextAt: at(31) };
  assert.deepEqual(queueOf(lists, 3), { ...queue, isMore: false });
  assert.deepEqual(queueOf(lists, 2), { ...queue, isMore: true });
  const none = { waiting: 0, failing: 0, isMore: false, oldestAt: null, nextAt: null };
  assert.deepEqual(queueOf([[], []], 3), none);
});

test('the picture of an explanation shows stays, gaps and the minimum stay where they were, cut to the window', () => {
  const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
  const visit = (from: number, to: number, outcome: Explanation['visits'][number]['outcome']) => ({
    first_inside_at: at(from),
    last_inside_at: at(to),
    points: 2,
    seconds: (to - from) * 60,
    deepest_m: null,
    outcome,
    event_ids: [],
  });
  const visits = [visit(-10, 10, 'entry_and_exit'), visit(50, 60, 'too_short'), visit(90, 120, 'pending')];
  const line = timeLine(
    { visits, gaps: [{ from: at(20), to: at(45), seconds: 1_500 }] },
    { from: at(0), to: at(100) },
    900,
  );
  assert.deepEqual(line.visits, [
    { x: 0, width: 10, outcome: 'entry_and_exit', threshold: 5 },
    { x: 50, width: 10, outcome: 'too_short', threshold: 65 },
    { x: 90, width: 10, outcome: 'pending', threshold: null },
  ]);
  assert.deepEqual(line.gaps, [{ x: 20, width: 25 }]);
  assert.match(line.text, /3 visits, 1 gap without points, minimum stay 15 min/);
});

test('the console writes lengths of time as the API does', () => {
  for (const seconds of [
    0, 0.5, 1, 59.999, 60, 61, 270, 3_599.7, 3_600, 5_400, 129_600, 172_799, 172_800, 2e6,
  ]) {
    assert.equal(duration(seconds), formatDuration(seconds * 1_000));
  }
});

test('what ages is told in its largest unit, and never in the future', () => {
  const told: readonly [number, string][] = [
    [-3, 'now'],
    [4.9, 'now'],
    [5, '5 s ago'],
    [59.9, '59 s ago'],
    [60, '1 min ago'],
    [3_599, '59 min ago'],
    [3_600, '1 h ago'],
    [2 * 86_400 - 1, '47 h ago'],
    [2 * 86_400, '2 days ago'],
  ];
  for (const [seconds, text] of told) assert.equal(agoText(seconds), text);
});

test('a number is not broken at the end of a line', () => {
  assert.equal(counted(123_286, 'point'), '123\u00a0286 points');
});

test('one of something is not many', () => {
  assert.deepEqual(
    [counted(0, 'point'), counted(1, 'point'), counted(2, 'entry', 'entries')],
    ['0 points', '1 point', '2 entries'],
  );
});
