import { scopeMask } from '../access/scopes.ts';
import type { Occupant } from '../devices/device.ts';
import { deviceNamesJson } from '../devices/device.ts';
import { DEVICE_NAMES, EXAMPLE_NOW_MS, EXAMPLE_POINT, EXAMPLE_VAN } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { dwellLeftSeconds, OCCUPANT_STATES } from '../devices/stays/occupants.memory.ts';
import { isLatLng } from '../geo/wgs84.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import { answerInTurns, type InTurnsPorts } from '../http/bulkCalls.ts';
import { answered, dataBody, type Operation } from '../http/openapi/operation.ts';
import {
  envelope,
  integer,
  list,
  nullable,
  number,
  pageMeta,
  ref,
  shapeOf,
  time,
} from '../http/openapi/schema.ts';
import {
  COORDINATES_MESSAGE,
  choiceParameter,
  idOf,
  isBlank,
  LAT,
  LIST_LIMIT,
  LNG,
  malformedId,
  OFFSET,
  offsetOf,
  type Parameter,
  parameterError,
  parseDecimal,
  readChoice,
  readLimit,
} from '../http/parameters.ts';
import type { Call, Route } from '../http/route.ts';
import { formatIso } from '../lib/time.ts';
import type { AtOnce, Steps, WorkTurns } from '../lib/workTurns.ts';
import { type AreaType, areaView } from './area.ts';
import { AreaAnswers } from './areaAnswers.ts';
import type { Area, AreaCatalog } from './areaCatalog.memory.ts';
import { AREA_TYPES, EXTERNAL_ID } from './areaFields.ts';
import {
  EXAMPLE_CIRCLE,
  EXAMPLE_POINT_AREA,
  EXAMPLE_POLYGON,
  EXAMPLE_POLYLINE,
  ONE_AREA,
} from './areaSchemas.ts';
import { areaFeature } from './geojson.ts';
import { toShape } from './shape.ts';

const EXAMPLES = [EXAMPLE_CIRCLE, EXAMPLE_POLYGON, EXAMPLE_POLYLINE, EXAMPLE_POINT_AREA];
const PAGE_META = {
  pagination: { limit: LIST_LIMIT.fallback, offset: 0, count: EXAMPLES.length },
  total: EXAMPLES.length,
};
const EXAMPLE_SHAPE = toShape(EXAMPLE_CIRCLE.definition.geometry);

export const AREA_TYPE = choiceParameter('type', AREA_TYPES, 'Only areas of this type.');

const AREA_FORMAT = choiceParameter(
  'format',
  ['json', 'geojson'],
  'The form of `data`: as below, or GeoJSON (RFC 7946).',
  'json',
);

const EXTERNAL_ID_FILTER: Parameter = {
  name: 'external_id',
  in: 'query',
  required: false,
  description: 'The area with exactly this external id: one or none.',
  schema: { type: 'string', pattern: EXTERNAL_ID.source },
};

const LIST_AREAS: Operation = {
  id: 'listAreas',
  tag: 'Areas',
  summary: 'List areas',
  description: 'Every area that the key can see, by id. `meta.total` counts what the filters leave.',
  parameters: [LIST_LIMIT, OFFSET, AREA_TYPE, AREA_FORMAT, EXTERNAL_ID_FILTER],
  answers: [
    answered(
      200,
      'A page of areas, as a list or as a FeatureCollection.',
      envelope(
        { oneOf: [list(ref('Area')), ref('AreaFeatureCollection')] },
        pageMeta({ total: integer('How many areas the filters leave.', { minimum: 0 }) }),
      ),
      {
        json: dataBody(EXAMPLES.map(areaView), PAGE_META),
        geojson: dataBody({ type: 'FeatureCollection', features: EXAMPLES.map(areaFeature) }, PAGE_META),
      },
    ),
  ],
  errors: [
    ['BAD_REQUEST', AREA_TYPE.errorMessage],
    ['BAD_REQUEST', AREA_FORMAT.errorMessage],
  ],
};

const GET_AREA: Operation = {
  id: 'getArea',
  tag: 'Areas',
  summary: 'Read one area',
  parameters: [AREA_FORMAT],
  answers: [
    answered(
      200,
      'The area, or a Feature with `format=geojson`.',
      envelope({ oneOf: [ref('Area'), ref('AreaFeature')] }),
      {
        json: dataBody(areaView(EXAMPLE_POLYGON)),
        geojson: dataBody(areaFeature(EXAMPLE_POLYGON)),
      },
    ),
  ],
  errors: [...ONE_AREA, ['BAD_REQUEST', AREA_FORMAT.errorMessage]],
};

const AREA_CONTAINS: Operation = {
  id: 'areaContains',
  tag: 'Areas',
  summary: 'Check whether a point is inside an area',
  description: 'By the same rule that produces entries and exits.',
  parameters: [LAT, LNG],
  answers: [
    answered(200, 'Inside or not.', envelope(ref('Containment')), {
      inside: dataBody({
        inside: EXAMPLE_SHAPE.contains(EXAMPLE_POINT.lat, EXAMPLE_POINT.lng),
        distance_m: EXAMPLE_SHAPE.signedDistanceM(EXAMPLE_POINT.lat, EXAMPLE_POINT.lng),
      }),
    }),
  ],
  errors: [...ONE_AREA, ['BAD_REQUEST', COORDINATES_MESSAGE]],
};

interface AreaReadPorts {
  readonly areas: AreaCatalog;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
  /** By account. */
  readonly atOnce: Pick<AtOnce<string | number>, 'run'>;
}

/** Area list, detail and contains: answered from memory. */
export function areaReadRoutes({ areas, turns, atOnce }: AreaReadPorts): Route[] {
  const answers = new AreaAnswers(turns);
  const get = (
    path: string,
    shedAs: Route['shedAs'],
    describe: Operation,
    handle: Route['handle'],
  ): Route => ({
    method: 'GET',
    path,
    scopes: scopeMask('read_areas'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs,
    isFromMemory: true,
    describe,
    handle,
  });
  return [
    get('/areas', 'bulk', LIST_AREAS, (call) => listAreas(areas, answers, call)),
    get('/areas/:id', 'poll', GET_AREA, (call) => detail(areas, answers, call)),
    get('/areas/:id/contains', 'poll', AREA_CONTAINS, (call) => contains(areas, atOnce, call)),
  ];
}

function listAreas(areas: AreaCatalog, answers: AreaAnswers, call: Call): Answer | Promise<Answer> {
  const { query } = call;
  const type = readChoice(query, AREA_TYPE);
  if (type === 'invalid') return parameterError(AREA_TYPE);
  const format = readChoice(query, AREA_FORMAT);
  if (format === 'invalid') return parameterError(AREA_FORMAT);
  const limit = readLimit(query, LIST_LIMIT);
  const offset = offsetOf(query);
  const { page, total } = select(areas, call, { type, offset, limit });
  const meta = { pagination: { limit, offset, count: page.length }, total };
  return answers.list({ accountId: call.caller.accountId, areas: page, format: format ?? 'json' }, meta);
}

/** With `external_id` at most one area matches, whatever the page; the type filter holds for it too. */
function select(
  areas: AreaCatalog,
  { caller, query }: Call,
  filter: { type: AreaType | null; offset: number; limit: number },
): { page: Area[]; total: number } {
  const { worldIds, accountId } = caller;
  const externalId = query['external_id'];
  if (externalId === undefined || isBlank(externalId)) {
    return {
      page: areas.page(worldIds, filter.type, filter.offset, filter.limit),
      total: areas.count(worldIds, filter.type),
    };
  }
  const area = areas.byExternalId(worldIds, accountId, externalId);
  const found =
    area !== undefined && (filter.type ?? area.definition.geometry.type) === area.definition.geometry.type;
  const matches = found ? [area] : [];
  return { page: matches.slice(filter.offset, filter.offset + filter.limit), total: matches.length };
}

function detail(
  areas: AreaCatalog,
  answers: AreaAnswers,
  { caller, params, query }: Call,
): Answer | Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const format = readChoice(query, AREA_FORMAT);
  if (format === 'invalid') return parameterError(AREA_FORMAT);
  const area = areas.area(caller.worldIds, id);
  if (area === undefined) return errorAnswer('NOT_FOUND');
  return answers.detail(caller.accountId, area, format ?? 'json');
}

/** Is the point inside, and how far is it from the edge: negative inside, metres. */
function contains(
  areas: AreaCatalog,
  atOnce: AreaReadPorts['atOnce'],
  { caller, params, query }: Call,
): Answer | Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const lat = parseDecimal(query['lat']);
  const lng = parseDecimal(query['lng']);
  if (lat === null || lng === null || !isLatLng(lat, lng)) {
    return errorAnswer('BAD_REQUEST', COORDINATES_MESSAGE);
  }
  const area = areas.area(caller.worldIds, id);
  if (area === undefined) return errorAnswer('NOT_FOUND');
  return atOnce.run(caller.accountId, () => containsAnswer(area, lat, lng));
}

function containsAnswer({ shape }: Area, lat: number, lng: number): Answer {
  const distanceM = shape.signedDistanceM(lat, lng);
  return jsonAnswer(`{"inside":${distanceM <= 0},"distance_m":${distanceM}}`);
}

const STAY = { areaId: EXAMPLE_CIRCLE.id, device: EXAMPLE_VAN };
const LAST_MS = EXAMPLE_VAN.position.recordedAtMs;
const ENTERED = { ...STAY, insideSinceMs: LAST_MS - 500_000, confirmedAtMs: LAST_MS - 150_000 };
const PENDING = { ...STAY, insideSinceMs: LAST_MS - 45_000, confirmedAtMs: null };
const ONE_DEVICE_META = { pagination: { ...PAGE_META.pagination, count: 1 }, total: 1 };
const occupantExample = (occupant: Occupant, dwellSeconds: number): unknown =>
  dataBody([JSON.parse(occupantJson(occupant, dwellSeconds, EXAMPLE_NOW_MS))], ONE_DEVICE_META);

type OccupantField = 'device' | 'since' | 'entered_at' | 'dwell_left_seconds' | 'last_point_at';

export const AREA_DEVICE_SCHEMAS = {
  AreaDevice: shapeOf<Record<OccupantField, unknown>>({
    device: shapeOf<Record<keyof typeof DEVICE_NAMES, unknown>>(DEVICE_NAMES),
    since: time('The GPS time of the first point inside.'),
    entered_at: nullable(time('The GPS time of the point that made the entry; null while it is pending.')),
    dwell_left_seconds: number(
      'GPS time from the newest point until the entry is made, if the device stays; 0 once it is.',
      { minimum: 0 },
    ),
    last_point_at: time('The GPS time of the newest point of the device.'),
  }),
};

const OCCUPANT_STATE = choiceParameter(
  'state',
  OCCUPANT_STATES,
  '`inside`: only devices whose entry is made. `pending`: only those that have not stayed for `dwell_seconds` yet.',
  'all',
);

const AREA_DEVICES: Operation = {
  id: 'listAreaDevices',
  tag: 'Areas',
  summary: 'List the devices that are in an area',
  description:
    'By the stays that produce entries and exits: GPS points and the minimum stay, so a device is in the area until its next point says otherwise. Those that the key can see, longest stay first, then by IMEI. `meta.total` counts all of the state.',
  parameters: [OCCUPANT_STATE, LIST_LIMIT, OFFSET],
  answers: [
    answered(
      200,
      'A page of devices.',
      envelope(
        list(ref('AreaDevice')),
        pageMeta({ total: integer('How many devices there are in this state.', { minimum: 0 }) }),
      ),
      {
        inside: occupantExample(ENTERED, EXAMPLE_CIRCLE.definition.dwellSeconds),
        pending: occupantExample(PENDING, 120),
      },
    ),
  ],
  errors: [...ONE_AREA, ['BAD_REQUEST', OCCUPANT_STATE.errorMessage]],
};

interface AreaDevicesPorts extends InTurnsPorts {
  readonly areas: AreaCatalog;
  readonly fleet: Fleet;
}

/** Which devices are in an area, by the stays of the engine: answered from memory. */
export function areaDevicesRoute(ports: AreaDevicesPorts): Route {
  return {
    method: 'GET',
    path: '/areas/:id/devices',
    scopes: scopeMask('read_areas', 'read_devices'),
    isOpenToGroups: true,
    needsAllScopes: true,
    versions: ['v3'],
    shedAs: 'bulk',
    isFromMemory: true,
    describe: AREA_DEVICES,
    handle: (call) => devicesIn(ports, call),
  };
}

function devicesIn(ports: AreaDevicesPorts, call: Call): Answer | Promise<Answer> {
  const { areas, fleet } = ports;
  const { caller, params, query, nowMs } = call;
  const id = idOf(params);
  if (id === null) return malformedId();
  const state = readChoice(query, OCCUPANT_STATE);
  if (state === 'invalid') return parameterError(OCCUPANT_STATE);
  const limit = readLimit(query, LIST_LIMIT);
  const offset = offsetOf(query);
  const { worldIds } = caller;
  const area = areas.area(worldIds, id);
  if (area === undefined) return errorAnswer('NOT_FOUND');
  const { dwellSeconds } = area.definition;
  const answer = ({ page, total }: ReturnType<Fleet['occupants']>): Answer => {
    const items = page.map((occupant) => occupantJson(occupant, dwellSeconds, nowMs));
    const pagination = `{"limit":${limit},"offset":${offset},"count":${page.length}}`;
    return jsonAnswer(`[${items.join(',')}]`, `{"pagination":${pagination},"total":${total}}`);
  };
  const asked = [worldIds, id, state ?? 'all', { offset, limit }] as const;
  if (worldIds.groups === undefined) return answer(fleet.occupants(...asked));
  function* steps(): Steps<Answer> {
    return answer(yield* fleet.occupantsSeen(...asked));
  }
  return answerInTurns(ports, caller.accountId, steps());
}

/** A device in an area whose minimum stay is `dwellSeconds`. */
function occupantJson(occupant: Occupant, dwellSeconds: number, nowMs: number): string {
  const { device, insideSinceMs, confirmedAtMs } = occupant;
  const entered = confirmedAtMs === null ? 'null' : `"${formatIso(confirmedAtMs)}"`;
  const lastMs = device.position?.recordedAtMs ?? insideSinceMs;
  return (
    `{"device":${deviceNamesJson(device, nowMs)},"since":"${formatIso(insideSinceMs)}","entered_at":${entered}` +
    `,"dwell_left_seconds":${dwellLeftSeconds(occupant, dwellSeconds)},"last_point_at":"${formatIso(lastMs)}"}`
  );
}
