import assert from 'node:assert/strict';
import type { AreaDefinition, StoredArea } from '../../../src/areas/area.ts';
import type { AreaQuota } from '../../../src/areas/areas.sql.ts';
import { type ImportOutcome, resolveImport } from '../../../src/areas/import/importAreas.ts';
import { type ImportPlan, planImport } from '../../../src/areas/import/importPlan.ts';
import { POINT } from '../reads/geojson.ts';

export const feature = <P = unknown>(geometry: unknown, properties: P = { name: 'A' } as P) => ({
  type: 'Feature',
  geometry,
  properties,
});
export const coded = (external_id: string, properties: object = {}, geometry: object = POINT) =>
  feature(geometry, { name: 'A', external_id, ...properties });

export function run<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

export function plan(body: unknown): ImportPlan {
  const planned = run(planImport(body));
  assert.ok(planned.ok, JSON.stringify(planned));
  return planned.value;
}

/** Room for everything. */
export const NO_QUOTA: AreaQuota = { areas: 0, vertices: 0, maxAreas: Infinity, maxVertices: Infinity };

const NOTHING_STORED = new Map<string, AreaDefinition>();

export function resolve(
  body: unknown,
  stored: ReadonlyMap<string, AreaDefinition> = NOTHING_STORED,
  quota = NO_QUOTA,
): ImportOutcome {
  return run(
    resolveImport(
      plan(body),
      new Map([...stored].map(([id, definition]) => [id, { definition } as StoredArea])),
      quota,
    ),
  );
}

export const errorsOf = (outcome: ImportOutcome) =>
  outcome.errors.map(({ index, code }) => `${index} ${code}`);
export const namesOf = (outcome: ImportOutcome) => outcome.writes.map(({ area }) => area.definition.name);
