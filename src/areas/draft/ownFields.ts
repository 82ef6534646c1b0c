import { isJsonObject, isMissing, type JsonObject } from '../../lib/parseJson.ts';
import type { AreaType } from '../area.ts';
import type { Sent } from './areaDraft.ts';
import { sentColor, sentDwellSeconds, sentExternalId, sentName, sentNumber, sentType } from './sentFields.ts';

/** The fields that both forms of a body have beside the geometry: v3 JSON, and a Feature's properties. */
export interface OwnFields {
  readonly name: Sent<string>;
  readonly color: Sent<string>;
  readonly type: Sent<AreaType>;
  readonly radiusM: number | undefined;
  readonly bufferM: number | undefined;
  readonly externalId: Sent<string | null>;
  readonly dwellSeconds: Sent<number>;
}

export function readBodyFields(body: JsonObject): OwnFields {
  return {
    name: sentName(body['name']),
    color: sentColor(body['color']),
    type: sentType(body['type']),
    radiusM: sentNumber(body['radius_m']),
    bufferM: sentNumber(body['buffer_m']),
    externalId: sentExternalId(body['external_id']),
    dwellSeconds: sentDwellSeconds(body['dwell_seconds']),
  };
}

/**
 * The properties of a Feature. They may come from programs that know nothing of areas. So a name that is not text, a
 * colour in another notation and a type of something else count as not sent, and so does null. Properties that only
 * areas have (radius, bufferDistance, external_id, dwell_seconds) are validated.
 */
export function readProperties(value: unknown): OwnFields {
  const properties: JsonObject = isJsonObject(value) ? value : {};
  const type = sentType(properties['type']);
  return {
    name: sentName([properties['name'], properties['title']].find(isText)),
    color: [sentColor(properties['color']), sentColor(properties['stroke'])].find((color) => color?.ok),
    type: type?.ok ? type : undefined,
    radiusM: sentNumber(properties['radius']),
    bufferM: sentNumber(properties['bufferDistance'] ?? properties['buffer_distance']),
    externalId: isMissing(properties['external_id']) ? undefined : sentExternalId(properties['external_id']),
    dwellSeconds: sentDwellSeconds(properties['dwell_seconds']),
  };
}

const isText = (value: unknown) => typeof value === 'string' && value.trim() !== '';

/** Field by field what `above` says, else what `below` says. */
export function mergeFields(above: OwnFields, below: OwnFields): OwnFields {
  return {
    name: above.name ?? below.name,
    color: above.color ?? below.color,
    type: above.type ?? below.type,
    radiusM: above.radiusM ?? below.radiusM,
    bufferM: above.bufferM ?? below.bufferM,
    externalId: above.externalId ?? below.externalId,
    dwellSeconds: above.dwellSeconds ?? below.dwellSeconds,
  };
}
