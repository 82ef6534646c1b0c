import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type AreaDefinition, type AreaGeometry, areaMeasures, toVertices } from '../../src/areas/area.ts';
import { type Area, AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { toShape } from '../../src/areas/shape.ts';
import { decodeStays, encodeStays, type Stay } from '../../src/devices/stays/packedStays.ts';
import { StayBudget, StayRoom } from '../../src/devices/stays/stayCounts.ts';
import { watchedAreas } from '../../src/ingest/evaluateFixes.ts';
import {
  askShape,
  type GeofenceStep,
  geofenceSteps,
  type PointFacts,
  type WatchedAreas,
} from '../../src/ingest/geofences.ts';
import { Tenancy } from '../../src/ingest/watchers.memory.ts';
import { inOneGo, Pace } from '../../src/lib/workTurns.ts';
import { runs } from '../support/torture.ts';
import { type NaiveArea, type NaiveEvent, NaiveReplay, ORGANIZATIONS } from './naiveReplay.ts';

describe('any points, areas and edits', () => {
  test('produce what a naive replay of the whole past produces, and exits only after entries', () => {
    let reported = 0;
    fc.assert(
      fc.property(fc.array(anyStep, { minLength: 30, maxLength: 120, size: 'max' }), (steps) => {
        const pair = new ReplayPair();
        for (const step of steps) reported += pair.take(step);
      }),
      { seed: 4, numRuns: runs(100) },
    );

    assert.ok(reported > 500, `only ${reported} events were reported: the property says little`);
  });
});

const PLACES: readonly (readonly [lat: number, lng: number])[] = [
  [41.9, 12.5],
  [41.9, 12.75],
  [42.15, 12.5],
  [-17, 179.9],
  [-17, -179.9],
  [-17, 180],
  [-17, -180],
  [90, 10],
  [89.9, -150],
  [-90, 0],
];
const place = fc.constantFrom(...PLACES);
const accountWorld = fc.constantFrom(1, 2, 3);
const organizationWorld = fc.constantFrom(ORGANIZATIONS, ORGANIZATIONS + 1);
const anyWorld = fc.oneof(accountWorld, organizationWorld);
const dwellSeconds = fc.constantFrom(0, 0, 1, 10, 60, 90);

/** Points lie on the edges of boxes too: with a half width of 0.25 they reach the next place. No boxes at the poles. */
const anyGeometry: fc.Arbitrary<DrawnGeometry> = fc.oneof(
  fc.record({
    kind: fc.constant('box' as const),
    center: fc.constantFrom(...PLACES.slice(0, 7)),
    halfDegrees: fc.constantFrom(0.05, 0.25, 0.5),
  }),
  fc.record({
    kind: fc.constant('circle' as const),
    center: place,
    radiusM: fc.constantFrom(25, 20_000, 100_000),
  }),
);

const device = fc.integer({ min: 0, max: 2 });
const area = fc.integer({ min: 0, max: 9 });
const afterMs = fc.constantFrom(1, 999, 1_000, 9_000, 10_000, 60_000);
const organization = fc.option(organizationWorld);
const kind = <K extends Step['kind']>(name: K) => fc.constant(name);

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 28, arbitrary: fc.record({ kind: kind('point'), device, afterMs, place }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: kind('create'), worldId: anyWorld, geometry: anyGeometry, dwellSeconds }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind('reshape'), area, geometry: anyGeometry }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('retime'), area, dwellSeconds }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('move'), area, worldId: anyWorld }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('delete'), area }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('join'), worldId: accountWorld, organization }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('give'), device, worldId: anyWorld }) },
);

type DrawnGeometry = { readonly center: readonly [lat: number, lng: number] } & (
  | { readonly kind: 'box'; readonly halfDegrees: number }
  | { readonly kind: 'circle'; readonly radiusM: number }
);

type Step =
  | { readonly kind: 'point'; device: number; afterMs: number; place: readonly [number, number] }
  | { readonly kind: 'create'; worldId: number; geometry: DrawnGeometry; dwellSeconds: number }
  | { readonly kind: 'reshape'; area: number; geometry: DrawnGeometry }
  | { readonly kind: 'retime'; area: number; dwellSeconds: number }
  | { readonly kind: 'move'; area: number; worldId: number }
  | { readonly kind: 'delete'; area: number }
  | { readonly kind: 'join'; worldId: number; organization: number | null }
  | { readonly kind: 'give'; device: number; worldId: number };

/** The engine with everything that it needs, beside the naive replay; both take the same steps. */
class ReplayPair {
  readonly #areas = new AreaCatalog();
  readonly #tenancy = new Tenancy();
  readonly #naive = new NaiveReplay();
  /** Areas that were made, by the number that a step knows them by. */
  readonly #made: number[] = [];
  readonly #devices = [1, 2, ORGANIZATIONS].map((worldId) => ({ worldId, timeMs: 0, stays: '[]' }));
  /** Device and area with an entry and no exit yet. */
  readonly #open = new Set<string>();

  constructor() {
    this.#join(1, ORGANIZATIONS);
    this.#join(2, ORGANIZATIONS);
    this.#join(3, null);
  }

  /** Takes a step on both sides and compares; returns how many events it reported. */
  take(step: Step): number {
    switch (step.kind) {
      case 'point':
        return this.#point(step);
      case 'create':
        this.#made.push(this.#made.length + 1);
        this.#put(this.#made.length, step.worldId, step.geometry, step.dwellSeconds);
        return 0;
      case 'join':
        this.#join(step.worldId, step.organization);
        return 0;
      case 'give':
        (this.#devices[step.device] as { worldId: number }).worldId = step.worldId;
        return 0;
      default:
        this.#edit(step);
        return 0;
    }
  }

  #point({ device: deviceId, afterMs, place: [lat, lng] }: Extract<Step, { kind: 'point' }>): number {
    const device = this.#devices[deviceId];
    assert.ok(device);
    device.timeMs += afterMs;
    const fix = { lat, lng, recordedAtMs: device.timeMs };
    const before = decodeStays(device.stays);
    const watch = watchedAreas(this.#areas, this.#tenancy, device.worldId);
    const { stays, events } = stepGeofences(before, fix, watch);
    const text = encodeStays(stays);
    assert.equal(stays === before, text === device.stays, 'a new list of stays only where something changed');
    device.stays = text;

    const expected = this.#naive.point(deviceId, device.worldId, fix, (areaId) =>
      this.#open.delete(`${deviceId} ${areaId}`),
    );
    assert.deepEqual(events.map(facts), expected.map(facts));
    for (const event of events) {
      const key = `${deviceId} ${event.areaId}`;
      assert.equal(this.#open.has(key), event.direction === 'exit', 'entries and exits take turns');
      if (event.direction === 'entry') this.#open.add(key);
      else this.#open.delete(key);
      assert.deepEqual([event.occurredAtMs, event.position], [device.timeMs, { lat, lng }]);
      if (event.direction === 'exit')
        assert.equal(event.staySeconds, (event.occurredAtMs - event.enteredAtMs) / 1_000);
    }
    return events.length;
  }

  #edit(step: Extract<Step, { readonly area: number }>): void {
    const id = this.#made[step.area];
    const naive = this.#naive.areas.get(id ?? 0);
    if (id === undefined || naive === undefined) return;
    const area = this.#areas.area([naive.worldId], id) as Area;
    switch (step.kind) {
      case 'delete':
        this.#areas.remove(id);
        this.#naive.areas.delete(id);
        break;
      case 'reshape':
        this.#put(id, naive.worldId, step.geometry, naive.dwellSeconds);
        break;
      case 'retime':
        this.#areas.put({ ...area, definition: { ...area.definition, dwellSeconds: step.dwellSeconds } });
        naive.dwellSeconds = step.dwellSeconds;
        break;
      case 'move':
        this.#areas.put({ ...area, worldId: step.worldId });
        naive.worldId = step.worldId;
        break;
    }
  }

  #put(id: number, worldId: number, drawn: DrawnGeometry, dwellSeconds: number): void {
    const definition = { name: `${id}`, color: '#3b82f6', externalId: null, dwellSeconds };
    const geometry = geometryOf(drawn);
    const shape = toShape(geometry);
    this.#areas.put({ ...areaOf(id, worldId, { ...definition, geometry }), shape });
    const contains = drawn.kind === 'circle' ? shape.contains.bind(shape) : boxContains(drawn);
    this.#naive.areas.set(id, { id, worldId, dwellSeconds, contains });
  }

  #join(worldId: number, organization: number | null): void {
    this.#tenancy.putAccount(worldId, worldId, organization);
    if (organization === null) this.#naive.organizationOf.delete(worldId);
    else this.#naive.organizationOf.set(worldId, organization);
  }
}

/** A point against all areas that watch its device, without limits. */
function stepGeofences(stays: readonly Stay[], fix: PointFacts, watch: WatchedAreas): GeofenceStep {
  const run = { pace: new Pace(), contains: askShape, isSpent: () => false };
  const room = new StayRoom(new StayBudget(), stays.length);
  const step = inOneGo(geofenceSteps(stays, fix, watch, watch.near(fix.lat, fix.lng), room, run));
  if (step === null) throw new Error('the step took too long');
  return step;
}

const facts = ({ direction, areaId, enteredAtMs, dwellSeconds, worldId }: NaiveEvent) => ({
  direction,
  areaId,
  enteredAtMs,
  dwellSeconds,
  worldId,
});

function areaOf(id: number, worldId: number, definition: AreaDefinition): Omit<Area, 'shape'> {
  const measures = areaMeasures(definition.geometry);
  return { id, worldId, accountId: 1, definition, measures, createdAtMs: 0, revision: 1 };
}

function geometryOf(drawn: DrawnGeometry): AreaGeometry {
  const [lat, lng] = drawn.center;
  if (drawn.kind === 'circle') return { type: 'circle', center: { lat, lng }, radiusM: drawn.radiusM };
  const [south, north] = [lat - drawn.halfDegrees, lat + drawn.halfDegrees];
  const [west, east] = [wrapped(lng - drawn.halfDegrees), wrapped(lng + drawn.halfDegrees)];
  const corners = [
    { lat: south, lng: west },
    { lat: south, lng: east },
    { lat: north, lng: east },
    { lat: north, lng: west },
  ];
  return { type: 'polygon', points: toVertices(corners) };
}

function wrapped(lng: number): number {
  return lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng;
}

/** The same position may have a name a turn to the west or to the east. */
function boxContains({
  center,
  halfDegrees,
}: Extract<DrawnGeometry, { kind: 'box' }>): NaiveArea['contains'] {
  const [middle, meridian] = center;
  return (lat, lng) =>
    lat >= middle - halfDegrees &&
    lat <= middle + halfDegrees &&
    [-360, 0, 360].some(
      (turn) => lng + turn >= meridian - halfDegrees && lng + turn <= meridian + halfDegrees,
    );
}
