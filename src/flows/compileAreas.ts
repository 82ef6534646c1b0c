import { compileShape } from '../areas/shape.ts';
import type { StoredArea } from '../areas/storedArea.ts';
import type { AreaCatalog } from '../memory/areaCatalog.ts';

/** Vertices compiled between two looks at the other requests: about two milliseconds of work. */
const SLICE_VERTICES = 4_000;

/**
 * Puts areas into memory with their shapes compiled, in slices, so that no request waits behind a large import and
 * none has to compile. Earlier revisions than memory holds are passed over.
 */
export async function compileAreas(catalog: AreaCatalog, areas: readonly StoredArea[]): Promise<void> {
  let vertices = 0;
  for (const area of areas) {
    if ((catalog.revisionOf(area.id) ?? 0) >= area.revision) continue;
    const { geometry } = area.definition;
    catalog.put({ ...area, shape: compileShape(area.definition) });
    vertices += 'points' in geometry ? geometry.points.length / 2 : 1;
    if (vertices >= SLICE_VERTICES) {
      vertices = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
