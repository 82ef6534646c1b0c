import { fail, ok } from '../../lib/result.ts';
import type { AreaType } from '../area.ts';
import type { AreaDraft, Sent } from '../draft/areaDraft.ts';
import { AREA_ERRORS } from '../draft/areaErrors.ts';
import { mergeFields, type OwnFields } from '../draft/ownFields.ts';
import type { GeometryPart } from './geojsonIn.ts';

/** The draft of one geometry with a Feature's properties; `body` holds the fields sent beside them, which win. */
export function featureDraft(part: GeometryPart, properties: OwnFields, body: OwnFields | null): AreaDraft {
  const own = body ? mergeFields(body, properties) : properties;
  const type = sentTypeOf(part, properties.type, body?.type);
  const isPoint = part.type === 'point';
  return {
    ...own,
    type: type ?? ok(isPoint && own.radiusM !== undefined ? 'circle' : part.type),
    typeIsAssumed: isPoint && type === undefined,
    center: isPoint ? part.center : undefined,
    points: isPoint ? undefined : part.points,
    geojsonError: null,
    hadHoles: part.hadHoles,
  };
}

/** A property named type means something else as often as not, so it counts where it fits; a body's must fit. */
function sentTypeOf(part: GeometryPart, property: Sent<AreaType>, body: Sent<AreaType>): Sent<AreaType> {
  if (body) return !body.ok || fits(body.value, part) ? body : fail(AREA_ERRORS.typeMisfit);
  return property?.ok && fits(property.value, part) ? property : undefined;
}

function fits(type: AreaType, part: GeometryPart): boolean {
  return type === part.type || (type === 'circle' && part.type === 'point');
}
