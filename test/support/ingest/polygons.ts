import {
  type AreaDefinition,
  type AreaGeometry,
  areaMeasures,
  type StoredArea,
} from '../../../src/areas/area.ts';
import type { Area } from '../../../src/areas/areaCatalog.memory.ts';
import { type Shape, toShape } from '../../../src/areas/shape.ts';

type Facts = Partial<
  Pick<StoredArea, 'worldId' | 'accountId' | 'revision'> & Omit<AreaDefinition, 'geometry'>
>;

/** An area as memory has it. */
export function areaInMemory(id: number, geometry: AreaGeometry, facts: Facts = {}): Area {
  const { worldId = 1, accountId = 1, revision = 1, ...own } = facts;
  const definition = {
    name: `Area ${id}`,
    color: '#3b82f6',
    externalId: null,
    dwellSeconds: 0,
    geometry,
    ...own,
  };
  const stored = { id, worldId, accountId, revision, definition, createdAtMs: 0 };
  return { ...stored, measures: areaMeasures(geometry), shape: toShape(geometry) };
}

/** A polygon around a place that follows from its id. */
export function smallPolygon(id: number, worldId: number, vertices: number): Area {
  const points = new Float64Array(2 * vertices);
  for (let n = 0; n < vertices; n++) {
    const angle = (2 * Math.PI * n) / vertices;
    points[2 * n] = 41 + (id % 40) / 100 + 0.01 * Math.sin(angle);
    points[2 * n + 1] = 12 + (id % 7) / 10 + 0.01 * Math.cos(angle);
  }
  const name = `Area ${id} — Ü`;
  return areaInMemory(id, { type: 'polygon', points }, { worldId, accountId: worldId, name });
}

/** The same shape with something of its own. */
export const shapeWith = (shape: Shape, own: Partial<Shape>): Shape => ({
  contains: (lat, lng) => shape.contains(lat, lng),
  signedDistanceM: (lat, lng) => shape.signedDistanceM(lat, lng),
  insideDistanceM: (lat, lng) => shape.insideDistanceM(lat, lng),
  boxes: () => shape.boxes(),
  parts: () => shape.parts(),
  ...own,
});
