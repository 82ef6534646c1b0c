import { scopeMask } from '../access/scopes.ts';
import type { Area, AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { toShape } from '../areas/shape.ts';
import { statusOf } from '../devices/device.ts';
import { DEVICE_NAMES, EXAMPLE_NOW_MS, EXAMPLE_VAN } from '../devices/deviceSchemas.ts';
import { distanceM, isLatLng } from '../geo/wgs84.ts';
import { type Answer, dataAnswer, errorAnswer } from '../http/answer.ts';
import { answered, dataBody, type Operation } from '../http/openapi/operation.ts';
import { envelope, integer, list, number, ref, type Schema, shapeOf, time } from '../http/openapi/schema.ts';
import {
  COORDINATES_MESSAGE,
  FROM,
  isBlank,
  LAT,
  LNG,
  limitParameter,
  type Parameter,
  parseDecimal,
  parseId,
  type Query,
  readLimit,
  TO,
  WINDOW_MESSAGE,
} from '../http/parameters.ts';
import type { Call, Route } from '../http/route.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { DAY_MS, formatDuration, formatIso, HOUR_MS, OutOfTime } from '../lib/time.ts';
import {
  findPresence,
  PRESENCE_POINTS_MAX,
  PRESENCE_WORK_MS,
  type PresencePorts,
  type PresentDevice,
} from './findPresence.ts';
import type { Place } from './presence.ts';
import { historyWindowOf } from './readHistoryCall.ts';

const PRESENCE_LIMIT = limitParameter(200, 50);

const PRESENCE_LAT: Parameter = {
  ...LAT,
  required: false,
  description: 'The centre of a circle, in degrees north. With `lng` and `radius_m`, or `area_id` instead.',
};
const PRESENCE_LNG: Parameter = { ...LNG, required: false, description: 'The same in degrees east.' };

const RADIUS_MAX_M = 100_000;

const RADIUS_M = {
  name: 'radius_m',
  in: 'query',
  required: false,
  description: 'The radius of the circle in metres.',
  schema: { type: 'number', minimum: 1, maximum: RADIUS_MAX_M },
  example: 500,
} as const satisfies Parameter;
const RADIUS_MESSAGE = `radius_m must be a number from 1 to ${RADIUS_MAX_M}`;

const AREA_ID: Parameter = {
  name: 'area_id',
  in: 'query',
  required: false,
  description: 'An area instead of a circle, in its present shape.',
  schema: { type: 'integer', minimum: 1 },
};

/** How far back a call without `from` looks. */
const PRESENCE_SPAN_MS = 24 * HOUR_MS;
const PRESENCE_SPAN_MAX_MS = 31 * DAY_MS;

const PRESENCE_FROM: Parameter = {
  ...FROM,
  description: `${FROM.description} Without it 24 hours before \`to\`.`,
};
const PRESENCE_TO: Parameter = {
  ...TO,
  description: `${TO.description} Without it now. At most 31 days after \`from\`.`,
};

const PLACE_MESSAGE = 'send either lat, lng and radius_m, or area_id';
const AREA_ID_MESSAGE = 'area_id must be a positive integer';
const SPAN_MESSAGE = 'from and to are more than 31 days apart; narrow them';
const TOO_MANY_PRESENCE_POINTS = `more than ${PRESENCE_POINTS_MAX} points must be looked at; narrow from and to, or the place`;
const TOO_MUCH_PRESENCE_WORK = `the call takes more than ${formatDuration(PRESENCE_WORK_MS)} of processor time; narrow from and to, or the place, or take an area of fewer points`;

/** For the pages that are on their way when the search gives up. */
const GRACE_MS = 5_000;

/** Includes the wait for earlier ones of the same account. */
const PRESENCE_LIMIT_MS = 25_000;
/** Those of one account wait for each other. */
const RUNNING = { running: 64, runningPerKey: 2, waiting: 2_000, waitingPerKey: 50 };

interface PresenceRoutePorts extends PresencePorts {
  readonly areas: AreaCatalog;
}

/** Which devices were at a place during a period, by their stored points. */
export function presenceRoute(ports: PresenceRoutePorts): Route {
  const running = new FairSemaphore<number>(RUNNING);
  return {
    method: 'GET',
    path: '/presence',
    scopes: scopeMask('read_history_summary'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
    deadlineMs: PRESENCE_LIMIT_MS + GRACE_MS,
    describe: FIND_PRESENCE,
    handle: (call) => presence(ports, running, call),
  };
}

async function presence(
  ports: PresenceRoutePorts,
  running: FairSemaphore<number>,
  call: Call,
): Promise<Answer> {
  const { caller, query, nowMs } = call;
  const asked = readPlace(query);
  if (!asked.ok) return asked.error;
  const sent = historyWindowOf(query, caller, nowMs);
  if (sent === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const toMs = sent.sent.toMs ?? nowMs;
  const fromMs = sent.sent.fromMs ?? Math.max(sent.fromMs, toMs - PRESENCE_SPAN_MS);
  if (toMs - fromMs > PRESENCE_SPAN_MAX_MS) return errorAnswer('BAD_REQUEST', SPAN_MESSAGE);
  const limit = readLimit(query, PRESENCE_LIMIT);
  const place =
    'areaId' in asked.value
      ? placeOfArea(ports.areas.area(caller.worldIds, asked.value.areaId))
      : asked.value;
  if (place === null) return errorAnswer('NOT_FOUND');
  const untilMs = performance.now() + PRESENCE_LIMIT_MS;
  const isOver = () => {
    if (performance.now() > untilMs) throw new OutOfTime('the presence takes too long');
    return call.hasLeft?.() ?? false;
  };
  const found = await running.run(caller.accountId, () =>
    findPresence(ports, caller, place, { fromMs, toMs }, limit, isOver),
  );
  if (found === 'too_many_points') return errorAnswer('BAD_REQUEST', TOO_MANY_PRESENCE_POINTS);
  if (found === 'too_much_work') return errorAnswer('BAD_REQUEST', TOO_MUCH_PRESENCE_WORK);
  if (found === 'left') return dataAnswer([]);
  const devices = found.devices.map((each) => presenceView(each, nowMs));
  return dataAnswer(devices, presenceMeta({ fromMs, toMs, limit }, found.total));
}

/** A circle, whose closest point is the one nearest to its centre, or the id of an area. */
function readPlace(query: Query): Result<Place | { readonly areaId: number }, Answer> {
  const has = (name: string) => query[name] !== undefined && !isBlank(query[name]);
  const hasCircle = has('lat') || has('lng') || has(RADIUS_M.name);
  if (hasCircle === has('area_id')) return fail(errorAnswer('BAD_REQUEST', PLACE_MESSAGE));
  if (!hasCircle) {
    const areaId = parseId(query['area_id'] ?? '');
    return areaId === null ? fail(errorAnswer('BAD_REQUEST', AREA_ID_MESSAGE)) : ok({ areaId });
  }
  const lat = parseDecimal(query['lat']);
  const lng = parseDecimal(query['lng']);
  if (lat === null || lng === null || !isLatLng(lat, lng)) {
    return fail(errorAnswer('BAD_REQUEST', COORDINATES_MESSAGE));
  }
  const radiusM = parseDecimal(query[RADIUS_M.name]);
  if (radiusM === null || radiusM < 1 || radiusM > RADIUS_MAX_M) {
    return fail(errorAnswer('BAD_REQUEST', RADIUS_MESSAGE));
  }
  const circle = toShape({ type: 'circle', center: { lat, lng }, radiusM });
  return ok({
    boxes: circle.boxes(),
    contains: (pointLat, pointLng) => circle.contains(pointLat, pointLng),
    closenessM: (pointLat, pointLng) => distanceM(lat, lng, pointLat, pointLng),
  });
}

/** The closest point is the one deepest inside. */
function placeOfArea(area: Area | undefined): Place | null {
  if (area === undefined) return null;
  const { shape } = area;
  return {
    boxes: shape.boxes(),
    contains: (lat, lng) => shape.contains(lat, lng),
    closenessM: (lat, lng) => shape.signedDistanceM(lat, lng),
  };
}

type PresenceView = ReturnType<typeof presenceView>;
type PresenceMeta = ReturnType<typeof presenceMeta>;

export const PRESENCE_SCHEMAS = {
  DevicePresence: shapeOf<PresenceView>({
    device: shapeOf<PresenceView['device']>(DEVICE_NAMES),
    first_at: time('The GPS time of its first point there.'),
    last_at: time('The GPS time of its last point there.'),
    points: integer('How many of its points are there.', { minimum: 1 }),
    seconds: number(
      'How long it was there: the time from point to point inside. More than 10 minutes without a point do not count.',
      { minimum: 0 },
    ),
    closest_m: number(
      'Of a circle: metres from its centre to the closest point. Of an area: metres from its boundary to the point deepest inside, negative.',
    ),
    closest_at: time('The GPS time of that point.'),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

const PRESENCE_META: Schema = shapeOf<PresenceMeta>({
  query: shapeOf<PresenceMeta['query']>(
    { from: time('Not earlier than the plan retains.'), to: time(), limit: integer() },
    { description: 'The parameters as they were used.' },
  ),
  total: integer('How many devices were there.', { minimum: 0 }),
});

/** A device that was at a place. */
function presenceView({ device, ...presence }: PresentDevice, nowMs: number) {
  const { imei, name, plate } = device.fields;
  return {
    device: { id: imei, imei, name, plate, status: statusOf(device.position, nowMs) },
    first_at: formatIso(presence.firstMs),
    last_at: formatIso(presence.lastMs),
    points: presence.points,
    seconds: presence.insideMs / 1_000,
    closest_m: presence.closestM,
    closest_at: formatIso(presence.closestMs),
  };
}

/** What was asked for, as it was used, and how many devices were there in all. */
function presenceMeta(
  { fromMs, toMs, limit }: { readonly fromMs: number; readonly toMs: number; readonly limit: number },
  total: number,
) {
  return { query: { from: formatIso(fromMs), to: formatIso(toMs), limit }, total };
}

const LAST_MS = EXAMPLE_VAN.position.recordedAtMs;
const EXAMPLE = {
  device: EXAMPLE_VAN,
  firstMs: LAST_MS - 420_000,
  lastMs: LAST_MS - 60_000,
  points: 13,
  insideMs: 360_000,
  closestM: 42.5,
  closestMs: LAST_MS - 240_000,
};
const META = presenceMeta({ fromMs: LAST_MS - 86_400_000, toMs: LAST_MS, limit: PRESENCE_LIMIT.fallback }, 1);

const FIND_PRESENCE: Operation = {
  id: 'findPresence',
  tag: 'Devices',
  summary: 'Find which devices were at a place during a period',
  description:
    'By the stored points of all devices that the key can see: within a circle, or inside an area in its present shape. The earliest first, then by IMEI. What lies further back than the plan of the account retains is left out. An account has two of these calls at a time on a pod; others wait.',
  parameters: [PRESENCE_LAT, PRESENCE_LNG, RADIUS_M, AREA_ID, PRESENCE_FROM, PRESENCE_TO, PRESENCE_LIMIT],
  answers: [
    answered(200, 'The devices.', envelope(list(ref('DevicePresence')), PRESENCE_META), {
      'a van': dataBody([presenceView(EXAMPLE, EXAMPLE_NOW_MS)], META),
      nobody: dataBody([], { ...META, total: 0 }),
    }),
  ],
  errors: [
    ['BAD_REQUEST', PLACE_MESSAGE],
    ['BAD_REQUEST', COORDINATES_MESSAGE],
    ['BAD_REQUEST', RADIUS_MESSAGE],
    ['BAD_REQUEST', AREA_ID_MESSAGE],
    ['BAD_REQUEST', WINDOW_MESSAGE],
    ['BAD_REQUEST', SPAN_MESSAGE],
    ['BAD_REQUEST', TOO_MANY_PRESENCE_POINTS],
    ['BAD_REQUEST', TOO_MUCH_PRESENCE_WORK],
    'NOT_FOUND',
  ],
};
