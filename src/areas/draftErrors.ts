import type { FieldError } from '../lib/fieldError.ts';
import type { Steps } from '../lib/workTurns.ts';
import { type AreaDefinition, type AreaGeometry, toVertices } from './area.ts';
import type { AreaDraft } from './areaDraft.ts';
import { DEFAULT_COLOR } from './areaLimits.ts';
import { mergeDraft } from './mergeDraft.ts';

/**
 * What is wrong with the draft of a change whatever area it is meant for: the errors that an area of every type would
 * give. Parameters are validated before the lookup, so a body that could never be saved is answered with its errors even
 * where there is no area. Yields after each type.
 */
export function* draftErrors(draft: AreaDraft): Steps<readonly FieldError[]> {
  const errors: (readonly FieldError[])[] = [];
  for (const area of ONE_OF_EACH_TYPE) {
    const merged = mergeDraft(area, draft);
    errors.push(merged.ok ? [] : merged.error);
    yield;
  }
  const [first = [], ...others] = errors;
  return first.filter((error) => others.every((errors) => errors.includes(error)));
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
