import type { FieldError } from '../../lib/fieldError.ts';
import { isJsonObject, isMissing, type JsonObject } from '../../lib/parseJson.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { toVertices } from '../area.ts';
import { featureDraft } from '../import/featureDraft.ts';
import { readGeometry } from '../import/geojsonIn.ts';
import type { AreaDraft, DraftPoints, Sent } from './areaDraft.ts';
import { AREA_ERRORS } from './areaErrors.ts';
import { validatePoints } from './mergeDraft.ts';
import { mergeFields, type OwnFields, readBodyFields, readProperties } from './ownFields.ts';
import { sentCenter, sentPositions } from './sentFields.ts';

/**
 * A body of POST, PUT or PATCH: the v3 JSON shape, or { geojson: Feature or Geometry } with fields beside it that win
 * over the Feature's properties. Never throws, whatever the body. Fails only for a body that is not a JSON object; every other
 * error stays in the draft, to be reported by completeDraft or mergeDraft all at once.
 */
export function parseDraft(body: unknown): Result<AreaDraft, readonly FieldError[]> {
  if (!isJsonObject(body)) return fail([AREA_ERRORS.bodyInvalid]);
  const fields = readBodyFields(body);
  return ok(isMissing(body['geojson']) ? jsonDraft(body, fields) : wrappedDraft(body['geojson'], fields));
}

/**
 * The draft of the upsert route: it carries the code of the path, and a body's own code must be the same. null
 * differs too: a call that names its area by a code cannot remove the code.
 */
export function addressDraft(draft: AreaDraft, externalId: string): AreaDraft {
  const sent = draft.externalId;
  if (sent && !sent.ok) return draft;
  const same = sent === undefined || sent.value === externalId;
  return { ...draft, externalId: same ? ok(externalId) : fail(AREA_ERRORS.externalIdMismatch) };
}

function jsonDraft(body: JsonObject, fields: OwnFields): AreaDraft {
  return {
    ...fields,
    typeIsAssumed: false,
    center: sentCenter(body['center']),
    points: sentPoints(body['points'], fields),
    geojsonError: null,
    hadHoles: false,
  };
}

/** Validated at once where the body names a type that has points, and ignored where it names another. */
function sentPoints(value: unknown, { type }: OwnFields): Sent<DraftPoints> {
  const known = type?.ok ? type.value : null;
  if (known === 'circle' || known === 'point') return undefined;
  const positions = sentPositions(value);
  if (!positions?.ok) return positions;
  if (known) return validatePoints(known, positions.value);
  return ok({ points: toVertices(positions.value), validatedAs: null, simplified: false });
}

function wrappedDraft(geojson: unknown, fields: OwnFields): AreaDraft {
  const feature = isJsonObject(geojson) && geojson['type'] === 'Feature' ? geojson : null;
  const properties = readProperties(feature?.['properties']);
  const parts = readGeometry(feature ? feature['geometry'] : geojson);
  const part = parts.ok && parts.value.length === 1 ? parts.value[0] : undefined;
  if (part) return featureDraft(part, properties, fields);
  return {
    ...mergeFields(fields, properties),
    typeIsAssumed: false,
    center: undefined,
    points: undefined,
    geojsonError: AREA_ERRORS.geojsonInvalid,
    hadHoles: false,
  };
}
