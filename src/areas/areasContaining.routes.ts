import { scopeMask } from '../access/scopes.ts';
import { EXAMPLE_POINT } from '../devices/deviceSchemas.ts';
import { isLatLng } from '../geo/wgs84.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import {
  BATCH_BODY,
  BATCH_LIMITS,
  type BatchPoint,
  type BulkCalls,
  batchInput,
  batchItem,
  CONTAINING_MAX,
  errorJson,
  OUT_OF_RANGE,
  READ_PROMPTLY,
  readBatchPoints,
  type TextPieces,
} from '../http/bulkCalls.ts';
import { answered, dataBody, type Operation } from '../http/openapi/operation.ts';
import { envelope, ID, integer, list, number, ref, shapeOf } from '../http/openapi/schema.ts';
import {
  COORDINATES_MESSAGE,
  LAT,
  LNG,
  parameterError,
  parseDecimal,
  readChoice,
} from '../http/parameters.ts';
import { type Call, type Route, routeFactory } from '../http/route.ts';
import { invariant } from '../lib/errors.ts';
import { type AtOnce, Pace, type Steps } from '../lib/workTurns.ts';
import { type AreaType, areaName } from './area.ts';
import type { Area, AreaCatalog } from './areaCatalog.memory.ts';
import { AREA_FACTS } from './areaFields.ts';
import { AREA_TYPE } from './areaReads.routes.ts';
import { AREA_NAME, EXAMPLE_CIRCLE } from './areaSchemas.ts';
import { toShape } from './shape.ts';

const EXAMPLE_DISTANCE_M = toShape(EXAMPLE_CIRCLE.definition.geometry).signedDistanceM(
  EXAMPLE_POINT.lat,
  EXAMPLE_POINT.lng,
);
const EXAMPLE = { area: areaName(EXAMPLE_CIRCLE), distance_m: EXAMPLE_DISTANCE_M };
const EXAMPLE_ITEM = {
  id: EXAMPLE.area.id,
  external_id: EXAMPLE.area.external_id,
  distance_m: EXAMPLE_DISTANCE_M,
};
const DISTANCE_M = number('Metres to the boundary: negative inside, 0 on it.', { maximum: 0 });

export const CONTAINING_SCHEMAS = {
  ContainingArea: shapeOf<typeof EXAMPLE>({ area: AREA_NAME, distance_m: DISTANCE_M }),
  ContainingBatchInput: batchInput(),
  ContainingBatchItem: batchItem(
    'areas',
    list(
      shapeOf<{ id: number; external_id: string | null; distance_m: number }>({
        id: ID,
        external_id: AREA_FACTS.external_id,
        distance_m: DISTANCE_M,
      }),
      {
        description: `Deepest inside first. Where there are more than ${CONTAINING_MAX}, \`total\` counts them.`,
      },
    ),
    ['BAD_REQUEST'],
  ),
};

const AREAS_CONTAINING: Operation = {
  id: 'areasContaining',
  tag: 'Areas',
  summary: 'Find the areas that contain a point',
  description: `Deepest inside first, then by id, at most ${CONTAINING_MAX}; \`meta.total\` counts all. By the same rule that produces entries and exits.`,
  parameters: [LAT, LNG, AREA_TYPE],
  answers: [
    answered(
      200,
      'The areas.',
      envelope(
        list(ref('ContainingArea')),
        shapeOf<{ total: number }>({ total: integer('How many areas contain the point.', { minimum: 0 }) }),
      ),
      {
        one: dataBody([EXAMPLE], { total: 1 }),
        none: dataBody([], { total: 0 }),
      },
    ),
  ],
  errors: [['BAD_REQUEST', COORDINATES_MESSAGE], ['BAD_REQUEST', AREA_TYPE.errorMessage], 'TOO_COMPLEX'],
};

const AREAS_CONTAINING_BATCH: Operation = {
  id: 'areasContainingBatch',
  tag: 'Areas',
  summary: 'Find the areas that contain each of many points',
  description: `Up to ${BATCH_LIMITS.points} points in one call, which counts as one in the limits. Areas are in the order of the single route, at most ${CONTAINING_MAX} for each point. ${READ_PROMPTLY}`,
  body: {
    ...BATCH_BODY,
    schema: ref('ContainingBatchInput'),
    examples: { positions: { points: [{ ref: 'van 12', ...EXAMPLE_POINT }, OUT_OF_RANGE] } },
  },
  answers: [
    answered(200, 'One item for each point, in the order sent.', envelope(list(ref('ContainingBatchItem'))), {
      positions: dataBody([
        { ref: 'van 12', areas: [EXAMPLE_ITEM] },
        { ref: OUT_OF_RANGE.ref, error: { code: 'BAD_REQUEST', message: COORDINATES_MESSAGE } },
      ]),
    }),
  ],
};

interface AreasContainingPorts {
  readonly areas: AreaCatalog;
  readonly bulkCalls: BulkCalls;
  /** By account. */
  readonly atOnce: Pick<AtOnce<string | number>, 'run'>;
}

/** Which areas contain a point: one point, or up to 1 000. Answered from memory. */
export function areasContainingRoutes(ports: AreasContainingPorts): Route[] {
  const shared = { scopes: scopeMask('read_areas'), isOpenToGroups: true, versions: ['v3'] } as const;
  const single = routeFactory({ ...shared, shedAs: 'poll' });
  const batch = routeFactory({ ...shared, shedAs: 'bulk' });
  return [
    {
      ...single('GET', '/areas/containing', AREAS_CONTAINING, (call) => containing(ports, call)),
      isFromMemory: true,
    },
    batch('POST', '/areas/containing/batch', AREAS_CONTAINING_BATCH, ({ caller, body }) => {
      const points = readBatchPoints(body);
      if (!points.ok) return points.error;
      return ports.bulkCalls.answer(caller.accountId, (json) =>
        writeAll(json, ports.areas, caller.worldIds, points.value),
      );
    }),
  ];
}

function containing(
  { areas, bulkCalls, atOnce }: AreasContainingPorts,
  { caller, query }: Call,
): Answer | Promise<Answer> {
  const lat = parseDecimal(query['lat']);
  const lng = parseDecimal(query['lng']);
  if (lat === null || lng === null || !isLatLng(lat, lng)) {
    return errorAnswer('BAD_REQUEST', COORDINATES_MESSAGE);
  }
  const type = readChoice(query, AREA_TYPE);
  if (type === 'invalid') return parameterError(AREA_TYPE);
  const found = new ContainingAreas();
  const steps = found.find(areas.near(caller.worldIds, lat, lng), lat, lng, type, new Pace());
  // Nearly always the first step is the only one. Others take turns with other long computations.
  const answer = (isDone: boolean): Answer | Promise<Answer> =>
    isDone ? foundAnswer(found) : bulkCalls.run(caller.accountId, () => steps).then(() => foundAnswer(found));
  const isDone = atOnce.run(caller.accountId, () => steps.next().done === true);
  return isDone instanceof Promise ? isDone.then(answer) : answer(isDone);
}

function foundAnswer(found: ContainingAreas): Answer {
  const items = Array.from({ length: found.count }, (_, rank) => {
    const area = JSON.stringify(areaName(found.area(rank)));
    return `{"area":${area},"distance_m":${found.distanceM(rank)}}`;
  });
  return jsonAnswer(`[${items.join(',')}]`, `{"total":${found.total}}`);
}

function* writeAll(
  json: TextPieces,
  areas: AreaCatalog,
  worldIds: readonly number[],
  points: readonly BatchPoint[],
): Steps<void> {
  const found = new ContainingAreas();
  const pace = new Pace();
  json.add('{"data":[');
  for (const [n, point] of points.entries()) {
    json.add(`${n === 0 ? '' : ','}{"ref":${point.refJson},`);
    if ('errorJson' in point) {
      json.add(`"error":${point.errorJson}}`);
    } else {
      const { lat, lng } = point.sent;
      if (typeof lat === 'number' && typeof lng === 'number' && isLatLng(lat, lng)) {
        yield* found.find(areas.near(worldIds, lat, lng), lat, lng, null, pace);
        writeFound(json, found);
      } else {
        json.add(INVALID_POINT);
      }
    }
    if (pace.isDue()) yield* pace.pause();
  }
  json.add('],"meta":{}}');
}

const INVALID_POINT = `"error":${errorJson('BAD_REQUEST', COORDINATES_MESSAGE)}}`;

/** An external id is ASCII that JSON takes as it is: see EXTERNAL_ID. */
function writeFound(json: TextPieces, found: ContainingAreas): void {
  json.addAscii('"areas":[');
  for (let rank = 0; rank < found.count; rank++) {
    const { id, definition } = found.area(rank);
    const { externalId } = definition;
    json.addAscii(rank === 0 ? '{"id":' : ',{"id":');
    json.addAscii(String(id));
    json.addAscii(externalId === null ? ',"external_id":null' : `,"external_id":"${externalId}"`);
    json.addAscii(',"distance_m":');
    json.addAscii(String(found.distanceM(rank)));
    json.addAscii('}');
  }
  json.addAscii(found.total > found.count ? `],"total":${found.total}}` : ']}');
}

/** Areas between two sorts. One sort of all that an account may have around a point would take ten milliseconds. */
const KEPT = 2 * CONTAINING_MAX;

/**
 * The areas that contain a point, deepest inside first, then by id: the first of them, and how many there are. A batch
 * finds those of its points with one of these, point by point, in memory that is allocated once.
 */
export class ContainingAreas {
  readonly #areas: Area[] = [];
  /** Metres to the boundaries of these areas: 0 or less. */
  readonly #distancesM = new Float64Array(KEPT);
  /** Indexes of both lists, in order. */
  #order: number[] = [];
  #total = 0;

  /** How many there are. */
  get total(): number {
    return this.#total;
  }

  /** How many of them are known: at most CONTAINING_MAX. */
  get count(): number {
    return this.#order.length;
  }

  /** The area of this rank, less than `count`: 0 is the first. */
  area(rank: number): Area {
    return this.#areas[this.#at(rank)] as Area;
  }

  distanceM(rank: number): number {
    return this.#distancesM[this.#at(rank)] as number;
  }

  /** Finds those among the candidates that have this type, if any is given. Forgets what was found before. */
  *find(
    candidates: readonly Area[],
    lat: number,
    lng: number,
    type: AreaType | null,
    pace: Pace,
  ): Steps<void> {
    const order: number[] = [];
    /** Indexes of areas that have dropped out of the first ones. */
    const free: number[] = [];
    this.#total = 0;
    for (const area of candidates) {
      if (type !== null && area.definition.geometry.type !== type) continue;
      const distanceM = area.shape.insideDistanceM(lat, lng);
      if (pace.isDue()) yield* pace.pause();
      if (distanceM > 0) continue;
      this.#total++;
      const at = free.pop() ?? order.length;
      this.#areas[at] = area;
      this.#distancesM[at] = distanceM;
      order.push(at);
      if (order.length < KEPT) continue;
      this.#sort(order);
      free.push(...order.splice(CONTAINING_MAX));
    }
    this.#sort(order);
    order.splice(CONTAINING_MAX);
    this.#order = order;
  }

  #sort(order: number[]): void {
    order.sort((a, b) => this.#compare(a, b));
  }

  /** Not the difference of two distances: V8 would put each into memory of its own. */
  #compare(a: number, b: number): number {
    const aM = this.#distancesM[a] as number;
    const bM = this.#distancesM[b] as number;
    if (aM !== bM) return aM < bM ? -1 : 1;
    return (this.#areas[a] as Area).id - (this.#areas[b] as Area).id;
  }

  #at(rank: number): number {
    const at = this.#order[rank];
    invariant(at !== undefined, 'an area has this rank');
    return at;
  }
}
