import { scopeMask } from '../../access/scopes.ts';
import type { Device } from '../../devices/device.ts';
import { deviceJson, isImei } from '../../devices/device.ts';
import { EXAMPLE_IMEI, EXAMPLE_NOW_MS, EXAMPLE_VAN, IMEI_MESSAGE } from '../../devices/deviceSchemas.ts';
import type { Fleet } from '../../devices/fleet.memory.ts';
import type { Region } from '../../devices/index/regionWalk.ts';
import { boxRegion } from '../../devices/living/boxRegion.ts';
import { type DeviceFilter, FILTER_ERRORS, FILTERS, readFilter } from '../../devices/living/deviceFilter.ts';
import { FILTER_FIELDS, readFilterFields } from '../../devices/living/filterFields.ts';
import { type Answer, errorAnswer, jsonAnswer, validationAnswer } from '../../http/answer.ts';
import { answerInTurns, type InTurnsPorts } from '../../http/bulkCalls.ts';
import { answered, dataBody, type Operation } from '../../http/openapi/operation.ts';
import {
  choice,
  envelope,
  integer,
  list,
  number,
  ref,
  type Schema,
  shapeOf,
  text,
} from '../../http/openapi/schema.ts';
import { isBlank, limitParameter, optionalParameter, readLimit } from '../../http/parameters.ts';
import { jsonBody } from '../../http/requestBody.ts';
import { type Call, type Route, routeFactory } from '../../http/route.ts';
import { isJsonObject, isMissing } from '../../lib/parseText.ts';
import { BODY_INVALID, fail, ok, type Result } from '../../lib/result.ts';
import { Pace, type Steps, type WorkTurns } from '../../lib/workTurns.ts';
import type { AreaCatalog } from '../areaCatalog.memory.ts';
import { AREA_TYPES, AREA_WARNINGS, type AreaWarning } from '../areaFields.ts';
import { EXAMPLE_AREA_BODIES } from '../areaSchemas.ts';
import {
  AREA_ID,
  AREA_ID_MESSAGE,
  type AskedPlace,
  BBOX,
  BBOX_MESSAGE,
  PLACE_ERRORS,
  readPlace,
  readSentRegion,
  shapeRegion,
  TWO_PLACES_MESSAGE,
} from './place.ts';

export interface WithinPorts extends InTurnsPorts {
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  /** By account. */
  readonly turns: Pick<WorkTurns<string | number>, 'once'>;
}

const WITHIN_LIMIT = limitParameter(1_000, 200);

const AFTER = optionalParameter(
  'after',
  'Only devices behind this IMEI: that of the last device of the page before.',
  text(undefined, { pattern: '^[0-9]{14,17}$' }),
);
const AFTER_MESSAGE = `after: ${IMEI_MESSAGE}`;
const PLACE_REQUIRED_MESSAGE = 'bbox or area_id is required';

/** The errors of a place in a query. */
export const PLACE_QUERY_ERRORS = [
  ['BAD_REQUEST', BBOX_MESSAGE],
  ['BAD_REQUEST', AREA_ID_MESSAGE],
  ['BAD_REQUEST', TWO_PLACES_MESSAGE],
  'NOT_FOUND',
] as const;

const META: Schema = shapeOf<{ total: number; has_more: boolean; warnings?: readonly AreaWarning[] }>(
  {
    total: integer('How many devices are there and pass, on all pages.', { minimum: 0 }),
    has_more: { type: 'boolean', description: 'Whether there are more behind the last one.' },
    warnings: list(ref('AreaWarning')),
  },
  { optional: ['warnings'] },
);
const EXAMPLE_DATA = [JSON.parse(deviceJson(EXAMPLE_VAN, EXAMPLE_NOW_MS))];
const EXAMPLES = {
  'a van': dataBody(EXAMPLE_DATA, { total: 1, has_more: false }),
  nobody: dataBody([], { total: 0, has_more: false }),
};

const DEVICES_WITHIN: Operation = {
  id: 'devicesWithin',
  tag: 'Devices',
  summary: 'List the devices in a box or an area',
  description:
    'By their latest positions, in the order of IMEIs. A position on the boundary is inside, as for areas. Answered from memory as of one moment.',
  parameters: [BBOX, AREA_ID, ...FILTERS, WITHIN_LIMIT, AFTER],
  answers: [answered(200, 'A page of devices.', envelope(list(ref('Device')), META), EXAMPLES)],
  errors: [
    ['BAD_REQUEST', PLACE_REQUIRED_MESSAGE],
    ...PLACE_QUERY_ERRORS,
    ...FILTER_ERRORS,
    ['BAD_REQUEST', AFTER_MESSAGE],
    'TOO_COMPLEX',
  ],
};

const { name: _, external_id: __, dwell_seconds: ___, ...EXAMPLE_CIRCLE } = EXAMPLE_AREA_BODIES.circle;
const EXAMPLE_POLYGON = {
  type: 'Polygon',
  coordinates: [
    [
      [12.47, 41.894],
      [12.485, 41.894],
      [12.485, 41.906],
      [12.47, 41.906],
      [12.47, 41.894],
    ],
  ],
};

const DEVICES_WITHIN_SHAPE: Operation = {
  id: 'devicesWithinShape',
  tag: 'Devices',
  summary: 'List the devices in a shape that is sent',
  description:
    'As the route with a box, in `geojson` (a Polygon, a MultiPolygon of at most 50 polygons, or a Feature of one) or `area` (type and geometry as in the creation of an area). Nothing is saved. Holes are ignored, as in areas, with a warning.',
  body: {
    schema: ref('WithinInput'),
    examples: {
      polygon: { geojson: EXAMPLE_POLYGON, status: ['moving', 'parked'], limit: 100 },
      circle: { area: EXAMPLE_CIRCLE, group: 'north', after: EXAMPLE_IMEI },
    },
    fieldError: ref('WithinFieldError'),
    errorExamples: {
      'no shape': [PLACE_ERRORS.required],
      'no polygon': [PLACE_ERRORS.noPolygon],
      'not a JSON object': [BODY_INVALID],
    },
  },
  answers: [
    answered(200, 'A page of devices.', envelope(list(ref('Device')), META), {
      ...EXAMPLES,
      'with a warning': dataBody(EXAMPLE_DATA, {
        total: 1,
        has_more: false,
        warnings: [AREA_WARNINGS.warnHolesIgnored],
      }),
    }),
  ],
  errors: [...FILTER_ERRORS, ['BAD_REQUEST', AFTER_MESSAGE], 'TOO_COMPLEX'],
};

export const WITHIN_SCHEMAS: Readonly<Record<string, Schema>> = {
  WithinInput: {
    type: 'object',
    description: 'Has `geojson` or `area`.',
    properties: {
      geojson: { oneOf: [ref('GeoJsonFeature'), ref('GeoJsonGeometry')] },
      area: {
        type: 'object',
        description: 'As in the creation of an area, without what it is called.',
        required: ['type'],
        properties: {
          type: choice(AREA_TYPES),
          center: ref('LatLng'),
          radius_m: number('Metres, of circles and points.'),
          buffer_m: number('Metres, of polylines.'),
          points: list(ref('LatLng')),
        },
      },
      ...FILTER_FIELDS,
      limit: integer(WITHIN_LIMIT.description),
      after: text(AFTER.description),
    },
  },
  WithinFieldError: {
    ...shapeOf<{ field: string | null; code: string; message: string }>({
      field: { type: 'string', nullable: true },
      code: text(),
      message: text(),
    }),
    description: 'What is wrong with a shape, as in the creation of an area.',
  },
};

/** The devices in a box, in an area, or in a shape that is sent. Answered from memory. */
export function devicesWithinRoutes(ports: WithinPorts): Route[] {
  const route = routeFactory({
    scopes: scopeMask('read_devices', 'read_locations'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
  });
  return [
    {
      ...route('GET', '/devices/within', DEVICES_WITHIN, (call) => within(ports, call)),
      needsAllScopes: true,
      isFromMemory: true,
    },
    {
      ...route('POST', '/devices/within', DEVICES_WITHIN_SHAPE, (call) => withinShape(ports, call)),
      needsAllScopes: true,
    },
  ];
}

function within(ports: WithinPorts, call: Call): Answer | Promise<Answer> {
  const { query } = call;
  const place = readPlace(query);
  if (!place.ok) return place.error;
  if (place.value === null) return errorAnswer('BAD_REQUEST', PLACE_REQUIRED_MESSAGE);
  const filter = readFilter(query, call.caller.worldIds);
  if (!filter.ok) return filter.error;
  const after = readAfter(query['after']);
  if (!after.ok) return after.error;
  const region = regionAt(ports.areas, call, place.value);
  if (region === null) return errorAnswer('NOT_FOUND');
  const page = { afterImei: after.value, limit: readLimit(query, WITHIN_LIMIT) };
  return pageWithin(ports, call, region, filter.value, page, []);
}

/** null: the caller sees no such area. */
export function regionAt(
  areas: AreaCatalog,
  { caller }: Call,
  place: NonNullable<AskedPlace>,
): Region | null {
  if ('box' in place) return boxRegion(place.box);
  const area = areas.area(caller.worldIds, place.areaId);
  return area === undefined ? null : shapeRegion(area.shape);
}

function readAfter(sent: unknown): Result<string | null, Answer> {
  if (isMissing(sent) || (typeof sent === 'string' && isBlank(sent))) return ok(null);
  return typeof sent === 'string' && isImei(sent)
    ? ok(sent)
    : fail(errorAnswer('BAD_REQUEST', AFTER_MESSAGE));
}

async function withinShape(ports: WithinPorts, call: Call): Promise<Answer> {
  const json = jsonBody(call.body);
  if (!json.ok) return json.error;
  const body = json.value;
  if (!isJsonObject(body)) return validationAnswer([BODY_INVALID]);
  const filter = readFilterFields(body, call.caller.worldIds);
  if (!filter.ok) return filter.error;
  const after = readAfter(body['after']);
  if (!after.ok) return after.error;
  const sent = await ports.turns.once(call.caller.accountId, () => readSentRegion(body));
  if (!sent.ok) return sent.error;
  const { region, warnings } = sent.value;
  const page = { afterImei: after.value, limit: limitOf(body['limit']) };
  return pageWithin(ports, call, region, filter.value, page, warnings);
}

function limitOf(sent: unknown): number {
  const { min, max, fallback } = WITHIN_LIMIT;
  return typeof sent === 'number' ? Math.min(max, Math.max(min, Math.trunc(sent))) : fallback;
}

function pageWithin(
  { fleet, bulkCalls, atOnce }: WithinPorts,
  { caller, nowMs }: Call,
  region: Region,
  filter: DeviceFilter | null,
  page: { afterImei: string | null; limit: number },
  warnings: readonly AreaWarning[],
): Answer | Promise<Answer> {
  const { accountId, worldIds } = caller;
  function* answer(): Steps<Answer> {
    const found = yield* fleet.living.within(worldIds, region, filter, nowMs, page);
    const { total, hasMore } = found;
    const meta = {
      total,
      has_more: hasMore,
      ...(warnings.length === 0 ? {} : { warnings }),
    };
    return jsonAnswer(yield* devicesJson(fleet, found.devices, nowMs), JSON.stringify(meta));
  }
  return answerInTurns({ bulkCalls, atOnce }, accountId, answer());
}

function* devicesJson({ texts }: Fleet, devices: readonly Device[], nowMs: number): Steps<string> {
  const pace = new Pace();
  let json = '';
  for (const device of devices) {
    json += `${json === '' ? '[' : ','}${texts.text(device, nowMs)}`;
    if (pace.isDue()) yield* pace.pause();
  }
  return json === '' ? '[]' : `${json}]`;
}
