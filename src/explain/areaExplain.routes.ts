import { scopeMask } from '../access/scopes.ts';
import type { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { EXAMPLE_CIRCLE, ONE_AREA } from '../areas/areaSchemas.ts';
import { toShape } from '../areas/shape.ts';
import { DEVICE, IMEI_MESSAGE, imeiError } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, CutAnswer, errorAnswer, NotBegun, type StreamedBody } from '../http/answer.ts';
import { TextPieces } from '../http/bulkCalls.ts';
import { answered, type Operation } from '../http/openapi/operation.ts';
import { envelope, ref } from '../http/openapi/schema.ts';
import {
  choiceParameter,
  FROM,
  idOf,
  malformedId,
  type Parameter,
  parameterError,
  readChoice,
  TO,
  WINDOW_MESSAGE,
  windowOf,
} from '../http/parameters.ts';
import type { Call, Route } from '../http/route.ts';
import { DAY_MS, formatDuration, formatIso } from '../lib/time.ts';
import { inOneGo, type Steps, type WorkTurns } from '../lib/workTurns.ts';
import { EXPLAIN_META, explanationJson } from './explainJson.ts';
import { explanationOf } from './explanation.ts';
import {
  EXPLAIN_POINTS_MAX,
  EXPLAIN_WORK_MS,
  type ExplainRequest,
  type Explanations,
  type Unexplained,
} from './explanations.ts';
import { PointReplay } from './pointReplay.ts';
import type { WatchPeriod } from './watchPeriods.ts';

const EXPLAIN_WINDOW_DAYS = 31;
const WINDOW_MS = EXPLAIN_WINDOW_DAYS * DAY_MS;

const EXPLAIN_DEVICE: Parameter = { ...DEVICE, required: true, description: 'The IMEI of the device.' };

const EXPLAIN_FROM: Parameter = {
  ...FROM,
  description: `${FROM.description} Without it ${EXPLAIN_WINDOW_DAYS} days before \`to\`.`,
};

const EXPLAIN_TO: Parameter = { ...TO, description: `${TO.description} Without it now.` };

const STEPS = {
  ...choiceParameter('steps', ['true', 'false'], 'With every point of the window and what became of it.'),
  schema: { type: 'boolean', default: false },
} as const;

const TOO_MUCH_EXPLAIN_WORK = `the explanation takes more than ${formatDuration(EXPLAIN_WORK_MS)} of processor time; narrow from or to, or give the area fewer points`;

interface AreaExplainPorts {
  readonly areas: AreaCatalog;
  readonly fleet: Fleet;
  readonly explanations: Explanations;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

/** Why an area reported what it did for a device during a period, and nothing else. Changes nothing. */
export function areaExplainRoute(ports: AreaExplainPorts): Route {
  return {
    method: 'GET',
    path: '/areas/:id/explain',
    scopes: scopeMask('read_areas', 'read_history'),
    isOpenToGroups: true,
    needsAllScopes: true,
    versions: ['v3'],
    shedAs: 'bulk',
    describe: EXPLAIN_AREA,
    handle: (call) => explain(ports, call),
  };
}

function explain(ports: AreaExplainPorts, call: Call): Answer {
  const { areas, fleet, explanations, turns } = ports;
  const { caller, query, nowMs } = call;
  const areaId = idOf(call.params);
  if (areaId === null) return malformedId();
  const imei = query['device'] ?? '';
  const error = imeiError(imei);
  if (error !== null) return error;
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const steps = readChoice(query, STEPS);
  if (steps === 'invalid') return parameterError(STEPS);
  const toMs = window.toMs ?? nowMs;
  const fromMs = window.fromMs ?? toMs - WINDOW_MS;
  if (toMs - fromMs > WINDOW_MS) {
    return errorAnswer('BAD_REQUEST', windowTooLong(toMs - fromMs - WINDOW_MS));
  }
  const area = areas.area(caller.worldIds, areaId);
  if (area === undefined) return errorAnswer('NOT_FOUND');
  const device = fleet.device(caller.worldIds, imei);
  if (device === undefined) return errorAnswer('DEVICE_NOT_FOUND');

  const { id: deviceId, name, plate } = device.fields;
  const retainedFromMs = nowMs - caller.historyDays * DAY_MS;
  const request: ExplainRequest = {
    ...{ accountId: caller.accountId, worldIds: caller.worldIds, areaId, deviceId, imei },
    names: { device: name ?? plate ?? imei, area: area.definition.name },
    fromMs: Math.max(fromMs, retainedFromMs),
    toMs,
    trimmedToDays: fromMs < retainedFromMs ? caller.historyDays : null,
    withSteps: steps === 'true',
  };
  const body = explainBody(() => open(explanations, request), turns, caller.accountId);
  return { status: 200, body };
}

async function open(explanations: Explanations, request: ExplainRequest) {
  const opened = await explanations.open(request);
  if (typeof opened === 'string') throw new NotBegun(refusalOf(opened, explanations.pointsMax));
  const window = { from: formatIso(request.fromMs), to: formatIso(request.toMs) };
  const parts = explanationJson(opened.explanation, { window, points: opened.points });
  return { parts, close: opened.close };
}

function refusalOf(why: Unexplained, pointsMax: number): Answer {
  switch (why) {
    case 'area_gone':
      return errorAnswer('NOT_FOUND');
    case 'device_gone':
      return errorAnswer('DEVICE_NOT_FOUND');
    case 'too_many_points':
      return errorAnswer('BAD_REQUEST', tooManyPoints(pointsMax));
    case 'too_much_work':
      return errorAnswer('BAD_REQUEST', TOO_MUCH_EXPLAIN_WORK);
  }
}

/** What a window that is so much too long is answered with. */
function windowTooLong(excessMs: number): string {
  return `from and to are ${formatDuration(excessMs)} more than ${EXPLAIN_WINDOW_DAYS} days apart; narrow from or to`;
}

function tooManyPoints(pointsMax = EXPLAIN_POINTS_MAX): string {
  return `the device has more than ${pointsMax} points between from and to; narrow from or to`;
}

/** Bytes of a piece, and parts of it that are made between two looks at the clock. */
const PIECE_BYTES = 64 * 1024;
const PARTS_PER_STEP = 64;
/** What a reader may take for one piece of an answer, and for all of it. */
const READ_LIMITS_MS = { piece: 15_000, whole: 60_000 };

/** An explanation as JSON that is made while it is read. What fails before it begins has a status of its own. */
function explainBody(
  source: () => ReturnType<typeof open>,
  turns: WorkTurns<string | number>,
  accountId: number,
): StreamedBody {
  const json = new TextPieces();
  let opened: Awaited<ReturnType<typeof open>> | null = null;
  let untilMs = 0;
  return {
    bytes: null,
    stallLimitMs: READ_LIMITS_MS.piece,
    open: async () => {
      opened = await source();
      untilMs = performance.now() + READ_LIMITS_MS.whole;
    },
    next: async (take) => {
      if (opened === null) return false;
      if (performance.now() > untilMs) throw new CutAnswer('the reader takes too long');
      const isLast = await turns.run(accountId, addPiece(opened.parts, json));
      while (!json.isEmpty) take(json.shift());
      return !isLast;
    },
    close: () => opened?.close(),
  };
}

/** Adds parts until they make a piece; true after the last part. */
function* addPiece(parts: Iterator<string>, json: TextPieces): Steps<boolean> {
  const untilBytes = json.bytes + PIECE_BYTES;
  for (let n = 1; json.bytes < untilBytes; n++) {
    const part = parts.next();
    if (part.done === true) return true;
    json.add(part.value);
    if (n % PARTS_PER_STEP === 0) yield;
  }
  return false;
}

// Explanations that the code itself makes of a few points.

const { id: areaId, definition, createdAtMs } = EXAMPLE_CIRCLE;
const { geometry, dwellSeconds } = definition;
const SHAPE = toShape(geometry);
const CENTER = 'center' in geometry ? geometry.center : { lat: 0, lng: 0 };
const OUTSIDE = { lat: CENTER.lat + 0.05, lng: CENTER.lng };
const FROM_MS = Date.UTC(2026, 2, 2, 8);
const TO_MS = FROM_MS + 3_600_000;
/** When it comes in, and when it leaves. */
const [IN, OUT] = [600, 600 + 2 * dwellSeconds];

function exampleBody(
  points: readonly (readonly [seconds: number, place: typeof OUTSIDE])[],
  recorded: readonly (readonly [id: number, direction: 'entry' | 'exit', seconds: number])[],
): unknown {
  const periods: readonly WatchPeriod[] = [
    { sinceMs: createdAtMs, state: 'watched', shape: { compiled: () => SHAPE }, dwellSeconds, isKnown: true },
  ];
  const withSteps = recorded.length > 0;
  const replay = new PointReplay({ areaId, periods, fromMs: FROM_MS, stay: null, refused: null, withSteps });
  const atMs = (seconds: number) => FROM_MS + seconds * 1_000;
  replay.expect(
    recorded.map(([id, direction, seconds]) => ({
      ...{ id, direction, occurredAtMs: atMs(seconds), enteredAtMs: atMs(IN), isReadable: true },
    })),
  );
  const recordedAtMs = Float64Array.from(points, ([seconds]) => atMs(seconds));
  inOneGo(
    replay.take({
      count: points.length,
      recordedAtMs,
      lats: Float64Array.from(points, ([, { lat }]) => lat),
      lngs: Float64Array.from(points, ([, { lng }]) => lng),
      receivedAtMs: recordedAtMs.map((ms) => ms + 812),
      lates: new Float64Array(points.length),
    }),
  );
  replay.end();
  const names = { device: 'Van 12', area: definition.name, areaCreatedAtMs: createdAtMs, toMs: TO_MS };
  const window = { from: formatIso(FROM_MS), to: formatIso(TO_MS) };
  const explanation = explanationOf(replay, periods, names, null);
  return JSON.parse([...explanationJson(explanation, { window, points: replay.findings.points })].join(''));
}

const EXPLAIN_AREA: Operation = {
  id: 'explainArea',
  tag: 'Areas',
  summary: 'Explain why an area did or did not report a device',
  description: `Replays the stored points of a device, as they came, by the rule that decided on them, against the shape, the minimum stay and the owners that were in force when each came. \`event_ids\` are those of GET /areas/{id}/events in the same window. What cannot be known is a note, and is not guessed. Nothing is stored, sent or counted.

A window of at most ${EXPLAIN_WINDOW_DAYS} days, ${EXPLAIN_POINTS_MAX} points and ${formatDuration(EXPLAIN_WORK_MS)} of processor time; an account has one at a time on a pod, others wait. What lies further back than the plan of the account retains is left out (\`history_trimmed\`).`,
  parameters: [EXPLAIN_DEVICE, EXPLAIN_FROM, EXPLAIN_TO, STEPS],
  answers: [
    answered(200, 'The explanation.', envelope(ref('Explanation'), EXPLAIN_META), {
      'passed through': exampleBody(
        [
          [540, OUTSIDE],
          [IN, CENTER],
          [642, CENTER],
          [700, OUTSIDE],
        ],
        [],
      ),
      'entered and left, with steps': exampleBody(
        [
          [540, OUTSIDE],
          [IN, CENTER],
          [IN + dwellSeconds, CENTER],
          [OUT, OUTSIDE],
        ],
        [
          [81_204, 'entry', IN + dwellSeconds],
          [81_250, 'exit', OUT],
        ],
      ),
    }),
  ],
  errors: [
    ...ONE_AREA,
    'DEVICE_NOT_FOUND',
    'IMEI_REQUIRED',
    ['BAD_REQUEST', IMEI_MESSAGE],
    ['BAD_REQUEST', WINDOW_MESSAGE],
    ['BAD_REQUEST', STEPS.errorMessage],
    ['BAD_REQUEST', windowTooLong(14 * DAY_MS)],
    ['BAD_REQUEST', tooManyPoints()],
    ['BAD_REQUEST', TOO_MUCH_EXPLAIN_WORK],
  ],
};
