import assert from 'node:assert/strict';

/** An area as the API shows it. */
export interface WireArea {
  readonly id: number;
  readonly name: string;
  readonly color: string;
  readonly type: string;
  readonly center: { readonly lat: number; readonly lng: number } | null;
  readonly radius_m: number | null;
  readonly buffer_m: number | null;
  readonly points: readonly { readonly lat: number; readonly lng: number }[];
  readonly external_id: string | null;
  readonly dwell_seconds: number;
  readonly metrics: Readonly<Record<string, number | null>>;
  readonly bounds: Readonly<Record<'south' | 'west' | 'north' | 'east', number>>;
}

const METRIC_TOLERANCE = 1e-9;
const DEGREE_TOLERANCE = 1e-9;

/**
 * The same areas in the same order, whatever their ids: fields equal, metrics to 1e-9, vertices the same but for where
 * the ring starts and which way it runs.
 */
export function assertSameAreas(actual: readonly WireArea[], expected: readonly WireArea[]): void {
  assert.equal(actual.length, expected.length);
  for (const [n, one] of actual.entries()) assertSameArea(one, expected[n] as WireArea);
}

const FIELDS = ['name', 'color', 'type', 'radius_m', 'buffer_m', 'external_id', 'dwell_seconds'] as const;

function assertSameArea(actual: WireArea, expected: WireArea): void {
  for (const field of FIELDS) assert.equal(actual[field], expected[field], field);
  for (const [metric, value] of Object.entries(expected.metrics)) {
    const other = actual.metrics[metric] as number | null;
    if (value === null || other === null) assert.equal(other, value, metric);
    else assert.ok(Math.abs(other - value) <= METRIC_TOLERANCE * value, `${metric}: ${other}, ${value}`);
  }
  for (const side of ['south', 'west', 'north', 'east'] as const)
    assertClose(actual.bounds[side], expected.bounds[side], `${expected.name} ${side}`);
  assert.equal(actual.center === null, expected.center === null);
  for (const axis of ['lat', 'lng'] as const)
    assertClose(actual.center?.[axis] ?? 0, expected.center?.[axis] ?? 0, `${expected.name} centre`);
  assert.deepEqual(namesOf(actual), namesOf(expected), expected.name);
}

function assertClose(actual: number, expected: number, hint: string): void {
  const apart = Math.abs(actual - expected);
  assert.ok(Math.min(apart, Math.abs(apart - 360)) <= DEGREE_TOLERANCE, `${hint}: ${actual}, ${expected}`);
}

/** The vertices, each under one name: of a track in its order, of a polygon sorted. 180 and -180 are one meridian. */
function namesOf({ type, points }: WireArea): string[] {
  const names = points.map(({ lat, lng }) => `${lat} ${lng === 180 ? -180 : lng}`);
  return type === 'polygon' ? names.toSorted() : names;
}
