import type { KeyState } from '../../access/credentials.ts';
import { scopeMask } from '../../access/scopes.ts';
import type { AreaDefinition } from '../../areas/area.ts';
import type { Area, AreaCatalog } from '../../areas/areaCatalog.memory.ts';
import { completeDraft, parseDraft } from '../../areas/areaDraft.ts';
import { AREA_ERRORS, type AreaWarning } from '../../areas/areaFields.ts';
import { EXAMPLE_AREA_BODIES } from '../../areas/areaSchemas.ts';
import { type Shape, toShape } from '../../areas/shape.ts';
import { type Answer, errorAnswer, jsonAnswer, validationAnswer } from '../../http/answer.ts';
import { answered, dataBody, type Operation } from '../../http/openapi/operation.ts';
import { envelope, list, ref } from '../../http/openapi/schema.ts';
import { jsonBody } from '../../http/requestBody.ts';
import type { Call, Route } from '../../http/route.ts';
import { type FieldError, fail, ok, type Result } from '../../lib/result.ts';
import { DAY_MS, formatDuration, formatIso } from '../../lib/time.ts';
import type { WorkTurns } from '../../lib/workTurns.ts';
import { DwellTally, LISTED_EVENTS_MAX } from './areaReplay.ts';
import {
  AREA_CHANGED,
  BACKTEST_META,
  type BacktestNote,
  backtestJson,
  dwellView,
  NOT_RECORDED,
  replayedEventView,
} from './backtestJson.ts';
import {
  BACKTEST_LIMIT_MS,
  BACKTEST_SIZES,
  BACKTESTS_PER_ACCOUNT,
  type BacktestResult,
  type Backtests,
} from './backtests.ts';
import {
  BACKTEST_ERRORS,
  BACKTEST_LIMITS,
  type BacktestBody,
  readBacktest,
  tooManyPoints,
  tooMuchWork,
  windowTooLong,
} from './readBacktest.ts';

const TOO_MANY_BACKTESTS = `${BACKTESTS_PER_ACCOUNT} backtests of this account are running on this pod; try again when one of them is answered`;
const MAX_BODY_BYTES = 1024 * 1024;
/** More than a backtest may take, so that it is ended before its answer is given up. */
const ANSWER_LIMIT_MS = BACKTEST_LIMIT_MS + 5_000;

interface BacktestRoutePorts {
  readonly areas: AreaCatalog;
  readonly turns: WorkTurns<string | number>;
  readonly backtests: Backtests;
}

/** Stored points replayed against an area that exists, or against one that does not exist yet. Changes nothing. */
export function areaBacktestRoute(ports: BacktestRoutePorts): Route {
  return {
    method: 'POST',
    path: '/areas/backtest',
    scopes: scopeMask('read_areas', 'read_history'),
    isOpenToGroups: true,
    needsAllScopes: true,
    versions: ['v3'],
    shedAs: 'bulk',
    maxBodyBytes: MAX_BODY_BYTES,
    deadlineMs: ANSWER_LIMIT_MS,
    describe: BACKTEST_AREA,
    handle: (call) => backtest(ports, call),
  };
}

/** What points are replayed against: an area, or a draft with its warnings. */
interface Subject {
  readonly definition: AreaDefinition;
  readonly shape: Shape;
  readonly warnings: readonly AreaWarning[];
  readonly area: Area | null;
}

async function backtest(ports: BacktestRoutePorts, call: Call): Promise<Answer> {
  const { caller, nowMs } = call;
  const json = jsonBody(call.body);
  if (!json.ok) return json.error;
  const read = readBacktest(json.value);
  const draft = read.ok ? read.value.area : read.error.area;
  const drafted = draft === null ? null : await draftSubject(ports.turns, caller, draft);
  const errors = [...(drafted?.ok === false ? drafted.error : []), ...(read.ok ? [] : read.error.errors)];
  if (!read.ok || drafted?.ok === false) return validationAnswer(errors);
  const body = read.value;
  const subject = drafted?.value ?? storedSubject(ports.areas, caller, body.areaId);
  if (subject === null) return errorAnswer('NOT_FOUND');

  const { area, shape, definition } = subject;
  const retainedFromMs = nowMs - caller.historyDays * DAY_MS;
  const fromMs = Math.max(body.fromMs, retainedFromMs);
  const dwellSeconds = body.dwellSeconds ?? [definition.dwellSeconds];
  const outcome = await ports.backtests.run({
    accountId: caller.accountId,
    worldIds: caller.worldIds,
    shape,
    areaId: area?.id ?? null,
    oldestMs: engineBeganMs(area, fromMs),
    imeis: body.imeis,
    fromMs,
    toMs: body.toMs,
    dwellSeconds: [...new Set(dwellSeconds)],
    hasLeft: call.hasLeft ?? NEVER,
  });
  switch (outcome.kind) {
    case 'busy':
      return errorAnswer('TOO_MANY_REQUESTS', TOO_MANY_BACKTESTS);
    case 'too_many':
      return validationAnswer([tooManyPoints(outcome.points, outcome.devices, ports.backtests.sizes.points)]);
    case 'too_much_work':
      return validationAnswer([tooMuchWork(ports.backtests.sizes.workMs)]);
    case 'left':
      return errorAnswer('SERVICE_UNAVAILABLE', 'the caller has hung up');
    case 'done': {
      const meta = {
        window: { from: formatIso(fromMs), to: formatIso(body.toMs) },
        points: outcome.points,
        devices: outcome.devices,
        notes: notesOf(caller, subject, body, fromMs, outcome),
        ...(subject.warnings.length === 0 ? {} : { warnings: subject.warnings }),
      };
      const steps = backtestJson(outcome, dwellSeconds, area?.id ?? null);
      return jsonAnswer(await ports.turns.run(caller.accountId, steps), JSON.stringify(meta));
    }
  }
}

const NEVER = () => false;

/**
 * An area that was there when the window began knows nothing of what came before it was made. Of one that was made
 * later, or is a draft, the question is what it would have seen.
 */
function engineBeganMs(area: Area | null, fromMs: number): number {
  return area !== null && area.createdAtMs <= fromMs ? area.createdAtMs : 0;
}

/** The draft as it would be saved, or what POST /areas would say of it. */
async function draftSubject(
  turns: WorkTurns<string | number>,
  { accountId }: KeyState,
  sent: unknown,
): Promise<Result<Subject, readonly FieldError[]>> {
  const draft = parseDraft(sent);
  if (!draft.ok) return draft;
  const valid = await turns.once(accountId, () => completeDraft(draft.value));
  if (!valid.ok) return fail(valid.error);
  const { definition, warnings } = valid.value;
  return ok({ definition, shape: toShape(definition.geometry), warnings, area: null });
}

function storedSubject(areas: AreaCatalog, { worldIds }: KeyState, areaId: number | null): Subject | null {
  const area = areaId === null ? undefined : areas.area(worldIds, areaId);
  return area === undefined ? null : { definition: area.definition, shape: area.shape, warnings: [], area };
}

/** What cannot be known, by the order of BACKTEST_NOTE_CODES. */
function notesOf(
  { historyDays }: KeyState,
  { area }: Subject,
  body: BacktestBody,
  fromMs: number,
  { hasUnmarked, hasPastForms }: BacktestResult,
): BacktestNote[] {
  const notes: BacktestNote[] = [];
  if (body.fromMs < fromMs) {
    const at = formatIso(fromMs);
    const message = `the plan shows ${historyDays} days of history, so the window begins at ${at}`;
    notes.push({ code: 'history_trimmed', message, at });
  }
  if (hasUnmarked) notes.push(NOT_RECORDED);
  if (area !== null && area.createdAtMs > fromMs) {
    const at = formatIso(area.createdAtMs);
    const message = `the area was made at ${at}; nothing that came before is recorded for it`;
    notes.push({ code: 'area_did_not_exist', message, at });
  }
  if (hasPastForms) notes.push(AREA_CHANGED);
  return notes;
}

const { circle } = EXAMPLE_AREA_BODIES;
const IMEI = '356307042441013';
const WINDOW = { from: '2026-01-01T00:00:00.000Z', to: '2026-01-31T23:59:59.999Z' };
const ENTERED_MS = Date.parse('2026-01-14T07:31:20Z');
const META = { window: WINDOW, points: 44_640, devices: 12, notes: [NOT_RECORDED] };

/** One visit of ten minutes. */
function exampleData(areaId: number | null, recorded: number | null): unknown {
  const tally = new DwellTally(circle.dwell_seconds);
  const visit = [
    { imei: IMEI, direction: 'entry', lat: 41.9027, lng: 12.4963, occurredAtMs: ENTERED_MS },
    { imei: IMEI, direction: 'exit', lat: 41.9061, lng: 12.4911, occurredAtMs: ENTERED_MS + 480_000 },
  ] as const;
  for (const event of visit) tally.add(event);
  tally.same = recorded ?? 0;
  tally.devices = 1;
  tally.insideMs = 600_000;
  const events = tally.listed.map((event) => replayedEventView(event, areaId));
  return [{ ...dwellView(tally, recorded), events }];
}

const BACKTEST_AREA: Operation = {
  id: 'backtestArea',
  tag: 'Areas',
  summary: 'Try an area, or another minimum stay, on stored points',
  description: `Replays the stored points of a window by the rule that decides on new points, and lists which entries and exits an area would have had: a draft (\`area\`, validated as POST /areas does), or an area that exists (\`area_id\`), whose recorded events are then compared with those of the replay. Nothing is stored or sent.

A device that was inside before the window is known to be: its exit is listed, and no entry. \`events\` are the earliest ${LISTED_EVENTS_MAX}; all are counted. Devices are those that the key sees now. An unknown device in \`devices\` has no points. \`meta.notes\` say what cannot be known.

A window of at most ${BACKTEST_LIMITS.windowDays} days and ${BACKTEST_SIZES.points} points, including those that show who was inside before it. It takes at most ${formatDuration(BACKTEST_SIZES.workMs)} of processor time and ${formatDuration(BACKTEST_LIMIT_MS)} in all, and ends when the caller hangs up. An account has ${BACKTESTS_PER_ACCOUNT} at a time on each pod; a further one there is rejected with \`429\`.`,
  body: {
    schema: ref('BacktestInput'),
    fieldError: ref('BacktestFieldError'),
    examples: {
      draft: { area: circle, ...WINDOW, dwell_seconds: [0, 120, 600] },
      'an area that exists': { area_id: 42, devices: [IMEI], ...WINDOW },
    },
    errorExamples: {
      'every invalid field at once': [AREA_ERRORS.circleRadiusOutOfRange, BACKTEST_ERRORS.fromRequired],
      'no area': [BACKTEST_ERRORS.areaRequired],
      'too long a window': [windowTooLong(14 * DAY_MS)],
      'too many points': [tooManyPoints(5_012_448, 212, BACKTEST_SIZES.points)],
      'too much work': [tooMuchWork(BACKTEST_SIZES.workMs)],
      'not a JSON object': [AREA_ERRORS.bodyInvalid],
    },
  },
  answers: [
    answered(
      200,
      'One item for each minimum stay, in the order sent.',
      envelope(list(ref('BacktestResult')), BACKTEST_META),
      {
        draft: dataBody(exampleData(null, null), META),
        'an area that exists': dataBody(exampleData(42, 2), META),
      },
    ),
  ],
  errors: ['NOT_FOUND'],
};
