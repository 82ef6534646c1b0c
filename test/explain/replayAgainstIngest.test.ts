import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compileShape } from '../../src/areas/area.ts';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { StayBudget } from '../../src/devices/stays/stayCounts.ts';
import { NO_STAYS } from '../../src/devices/stays/stays.ts';
import type { GeofenceEvent } from '../../src/events/fleetEvent.ts';
import { AreaReplay, eventKey } from '../../src/explain/backtest/areaReplay.ts';
import { emptyColumns, sliceColumns } from '../../src/history/codec/pointColumns.ts';
import { NO_STATE } from '../../src/ingest/deviceEvents.ts';
import { evaluateFixes } from '../../src/ingest/evaluateFixes.ts';
import { KnownInside } from '../../src/ingest/geofences/geofences.ts';
import type { LockedState } from '../../src/ingest/points.sql.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { Tenancy } from '../../src/tenants/tenancy.memory.ts';
import { Subscriptions } from '../../src/webhooks/subscriptions.memory.ts';
import { validArea } from '../support/http/areas.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { newTurns } from '../support/workTurns.ts';

const WORLD = 1;
const FIRST_MS = 1_700_000_000_000;
const SEED = Number(process.env['FLEET_SEED'] ?? 11);

const AREAS: readonly object[] = [
  { name: 'Circle', type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 1_000 },
  {
    name: 'Across 180°',
    type: 'polygon',
    points: [
      { lat: -17.1, lng: 179.9 },
      { lat: -17.1, lng: -179.9 },
      { lat: -16.9, lng: -179.9 },
      { lat: -16.9, lng: 179.9 },
    ],
  },
  { name: 'Pole', type: 'circle', center: { lat: 90, lng: 0 }, radius_m: 20_000 },
];
const PLACES: readonly (readonly [lat: number, lng: number])[] = [
  [41.9, 12.5],
  [41.903, 12.503],
  [41.95, 12.5],
  [-17, 180],
  [-17, -180],
  [-17, 179.9],
  [-17, 0],
  [90, 77],
  [89.9, -150],
];

const fleet = fc.record({
  area: fc.nat(AREAS.length - 1),
  dwells: fc.uniqueArray(fc.constantFrom(0, 1, 10, 60, 600), { minLength: 1, maxLength: 4 }),
  /** Points of one batch each; times rise by device over the batches, not within one. */
  batches: fc.array(
    fc.array(
      fc.record({
        device: fc.nat(2),
        afterMs: fc.constantFrom(1, 999, 1_000, 9_000, 10_000, 60_000),
        place: fc.constantFrom(...PLACES),
      }),
      { maxLength: 8 },
    ),
    { minLength: 4, maxLength: 20 },
  ),
  from: fc.double({ min: 0, max: 1, noNaN: true }),
  page: fc.integer({ min: 1, max: 9 }),
});

interface Point {
  readonly device: number;
  readonly atMs: number;
  readonly lat: number;
  readonly lng: number;
}

/** What the flow of ingest makes of the batches, by minimum stay. */
async function ingested(
  definition: ReturnType<typeof validArea>['definition'],
  dwells: readonly number[],
  batches: readonly (readonly Point[])[],
) {
  const areas = new AreaCatalog();
  const tenancy = new Tenancy();
  tenancy.putAccount(1, WORLD, null);
  dwells.forEach((dwellSeconds, n) => {
    const own = { ...definition, dwellSeconds };
    areas.put({
      id: n + 1,
      worldId: WORLD,
      accountId: 1,
      definition: own,
      measures: validArea(AREAS[0] as object).measures,
      createdAtMs: 0,
      revision: 1,
      shape: compileShape(own.geometry),
    });
  });
  const locked = new Map<number, LockedState>(
    [0, 1, 2].map((device) => [
      device,
      { worldId: WORLD, state: NO_STATE, stays: NO_STAYS, revision: 0, movedAtMs: 0, owedMs: 0 },
    ]),
  );
  const events: { readonly device: number; readonly event: GeofenceEvent }[] = [];
  for (const batch of batches) {
    const points = batch.map(({ device, atMs, lat, lng }) => ({
      deviceId: device,
      fix: fixOf(String(device), atMs, { lat, lng }),
    }));
    const turns = newTurns();
    const memory = { fleet: new Fleet(), areas, tenancy, subscriptions: new Subscriptions() };
    const ports = { memory, turns };
    const { evaluation, geofences } = await evaluateFixes(
      ports,
      points,
      locked,
      FIRST_MS * 2,
      new KnownInside(),
      new StayBudget(),
    );
    for (const [device, before] of locked) {
      const state = evaluation.moved.get(device) ?? before.state;
      locked.set(device, { ...before, state, stays: geofences.stays.get(device) ?? before.stays });
    }
    for (const { point, event } of geofences.events) events.push({ device: point.deviceId, event });
  }
  return { events, locked };
}

/** The rule of surveyDevices: where the replay of a device begins. */
function startOf(
  points: readonly Point[],
  contains: (point: Point) => boolean,
  fromMs: number,
  dwell: number,
) {
  const last = points.findLast(({ atMs }) => atMs < fromMs);
  if (last === undefined || !contains(last)) return fromMs;
  const enough = last.atMs - dwell * 1_000;
  return points.findLast(({ atMs }) => atMs <= enough)?.atMs ?? enough;
}

test(`a replay of stored points is what ingest made of them, by page, window and minimum stay (seed ${SEED})`, async () => {
  let eventCount = 0;
  await fc.assert(
    fc.asyncProperty(fleet, async ({ area, dwells, batches: drawn, from, page }) => {
      const { definition } = validArea(AREAS[area] as object);
      const shape = compileShape(definition.geometry);
      const clocks = [FIRST_MS, FIRST_MS, FIRST_MS];
      const batches = drawn.map((batch) =>
        batch
          .map(({ device, afterMs, place: [lat, lng] }): Point => {
            clocks[device] = (clocks[device] as number) + afterMs;
            return { device, atMs: clocks[device], lat, lng };
          })
          .reverse(),
      );
      const { events, locked } = await ingested(definition, dwells, batches);
      const fromMs = Math.round(FIRST_MS + from * (Math.max(...clocks) - FIRST_MS));

      const replay = new AreaReplay(shape, dwells, fromMs);
      const lastMs = new Map<number, number>();
      for (const device of [0, 1, 2]) {
        const all = batches
          .flat()
          .filter((point) => point.device === device)
          .sort((a, b) => a.atMs - b.atMs);
        const startMs = startOf(all, ({ lat, lng }) => shape.contains(lat, lng), fromMs, Math.max(...dwells));
        const read = all.filter(({ atMs }) => atMs >= startMs);
        const columns = {
          ...emptyColumns(read.length),
          recordedAtMs: Float64Array.from(read, ({ atMs }) => atMs),
          lats: Float64Array.from(read, ({ lat }) => lat),
          lngs: Float64Array.from(read, ({ lng }) => lng),
        };
        lastMs.set(device, all.at(-1)?.atMs ?? 0);
        // Every other event is taken for recorded: of one area, which may as well be that of the first minimum stay.
        const recorded = events.flatMap(({ device: of, event }, n) =>
          of === device && event.areaId === 1 && n % 2 === 0
            ? [eventKey(event.direction, event.occurredAtMs)]
            : [],
        );
        replay.begin(String(device));
        for (let at = 0; at < read.length; at += page) {
          inOneGo(
            replay.take(sliceColumns(columns, at, Math.min(at + page, read.length)), new Set(recorded)),
          );
        }
        replay.end();
      }

      dwells.forEach((_, n) => {
        const own = events.filter(({ event }) => event.areaId === n + 1 && event.occurredAtMs >= fromMs);
        const tally = replay.tallies[n];
        assert.ok(tally);
        eventCount += own.length;
        const expected = own
          .map(({ device, event }) => ({
            imei: String(device),
            direction: event.direction,
            ...event.position,
            occurredAtMs: event.occurredAtMs,
          }))
          .sort((a, b) => a.occurredAtMs - b.occurredAtMs || Number(a.imei) - Number(b.imei));
        assert.deepEqual(tally.listed, expected);
        assert.deepEqual(
          [tally.entries, tally.exits],
          ['entry', 'exit'].map((each) => own.filter(({ event }) => event.direction === each).length),
        );
        const closed = own.flatMap(({ device, event }) =>
          event.direction === 'exit'
            ? [{ device, ms: event.occurredAtMs - Math.max(fromMs, event.enteredAtMs) }]
            : [],
        );
        const open = [...locked].flatMap(([device, { stays }]) => {
          const stay = stays.find(({ areaId }) => areaId === n + 1);
          const untilMs = lastMs.get(device) as number;
          return stay?.confirmedAtMs == null || untilMs < fromMs
            ? []
            : [{ device, ms: untilMs - Math.max(fromMs, stay.insideSinceMs) }];
        });
        const stays = [...closed, ...open];
        assert.equal(
          tally.insideMs,
          stays.reduce((sum, { ms }) => sum + ms, 0),
        );
        assert.equal(tally.devices, new Set(stays.map(({ device }) => device)).size);
        if (n === 0) {
          const recordedInWindow = events.filter(
            ({ event }, k) => k % 2 === 0 && event.areaId === 1 && event.occurredAtMs >= fromMs,
          );
          assert.equal(tally.same, recordedInWindow.length);
        }
      });
    }),
    { seed: SEED, numRuns: IS_TORTURE ? 20_000 : 300 },
  );
  assert.ok(eventCount > 500, `only ${eventCount} events: the property says little`);
});
