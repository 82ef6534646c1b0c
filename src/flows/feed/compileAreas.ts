import { compileShape } from '../../areas/shape.ts';
import type { StoredArea } from '../../areas/storedArea.ts';
import type { Steps } from '../../base/workTurns.ts';
import type { AreaCatalog } from '../../memory/areaCatalog.ts';

/** Vertices compiled between two pauses: half a millisecond of work, or one large area. */
const STEP_VERTICES = 1_000;

/**
 * Puts areas into memory with their shapes compiled, so that no request has to compile them. Areas of which memory has
 * the same or a later revision are skipped.
 */
export function* compileAreas(catalog: AreaCatalog, areas: readonly StoredArea[]): Steps<void> {
  let vertices = 0;
  for (const area of areas) {
    if ((catalog.revisionOf(area.id) ?? 0) >= area.revision) continue;
    const { geometry } = area.definition;
    catalog.put({ ...area, shape: compileShape(area.definition) });
    vertices += 'points' in geometry ? geometry.points.length / 2 : 1;
    if (vertices < STEP_VERTICES) continue;
    vertices = 0;
    yield;
  }
}
