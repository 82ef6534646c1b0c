import { areaMeasures } from '../../../src/areas/area.ts';
import type { Area } from '../../../src/areas/areaCatalog.memory.ts';
import { compileShape } from '../../../src/areas/shape.ts';

/** A polygon around a place that follows from its id. */
export function smallPolygon(id: number, worldId: number, vertices: number): Area {
  const points = new Float64Array(2 * vertices);
  for (let n = 0; n < vertices; n++) {
    const angle = (2 * Math.PI * n) / vertices;
    points[2 * n] = 41 + (id % 40) / 100 + 0.01 * Math.sin(angle);
    points[2 * n + 1] = 12 + (id % 7) / 10 + 0.01 * Math.cos(angle);
  }
  const definition = {
    name: `Area ${id} — Ü`,
    color: '#3b82f6',
    externalId: null,
    dwellSeconds: 0,
    geometry: { type: 'polygon', points },
  } as const;
  const measures = areaMeasures(definition.geometry);
  const stored = { id, worldId, accountId: worldId, definition, measures, createdAtMs: 0, revision: 1 };
  return { ...stored, shape: compileShape(definition.geometry) };
}
