import { type AreaDefinition, type AreaGeometry, toVertices } from './area.ts';
import type { AreaDraft } from './areaDraft.ts';
import { DEFAULT_COLOR } from './areaLimits.ts';
import type { FieldError } from './fieldError.ts';
import { mergeDraft } from './mergeDraft.ts';

/**
 * What is wrong with the draft of a change whatever area it is meant for: the faults that an area of every type would
 * find. Parameters are judged before the lookup, so a body that could never be saved is refused for that even where
 * there is no area.
 */
export function draftFaults(draft: AreaDraft): readonly FieldError[] {
  const [first = [], ...others] = ONE_OF_EACH_TYPE.map((area) => {
    const merged = mergeDraft(area, draft);
    return merged.ok ? [] : merged.error;
  });
  return first.filter((fault) => others.every((faults) => faults.includes(fault)));
}

const CENTER = { lat: 0, lng: 0 };
const POINTS = toVertices([CENTER, { lat: 0, lng: 1 }, { lat: 1, lng: 0 }]);
const GEOMETRIES: readonly AreaGeometry[] = [
  { type: 'circle', center: CENTER, radiusM: 100 },
  { type: 'point', center: CENTER, radiusM: 100 },
  { type: 'polygon', points: POINTS },
  { type: 'polyline', points: POINTS, bufferM: 100 },
];
const ONE_OF_EACH_TYPE = GEOMETRIES.map(
  (geometry): AreaDefinition => ({
    name: 'any',
    color: DEFAULT_COLOR,
    geometry,
    externalId: null,
    dwellSeconds: 0,
  }),
);
