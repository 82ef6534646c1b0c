import type { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { shapeInSteps } from '../areas/shape.ts';
import type { StoredArea } from '../areas/storedArea.ts';
import { Pace } from '../lib/pace.ts';
import type { Steps } from '../lib/workTurns.ts';

/**
 * Puts areas into memory with their shapes compiled, so that no request has to compile them. Areas of which memory has
 * the same or a later revision are skipped. A large area takes more than one step.
 */
export function* compileAreas(catalog: AreaCatalog, areas: readonly StoredArea[]): Steps<void> {
  const pace = new Pace();
  for (const area of areas) {
    if ((catalog.revisionOf(area.id) ?? 0) >= area.revision) continue;
    const steps = shapeInSteps(area.definition.geometry);
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) if (pace.isDue()) yield* pace.pause();
    catalog.put({ ...area, shape: step.value });
    if (pace.isDue()) yield* pace.pause();
  }
}
