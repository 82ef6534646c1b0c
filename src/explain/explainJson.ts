import {
  choice,
  ID,
  integer,
  list,
  nullable,
  number,
  ref,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import { formatIso } from '../lib/time.ts';
import { type Explanation, NOTE_CODES, type Note, VERDICTS } from './explanation.ts';
import { DECISIONS, type Decision, type Gap, OUTCOMES, type Step, type Visit } from './replayFindings.ts';

function visitView(visit: Visit) {
  const { firstInsideMs, lastInsideMs, points, deepestM, outcome, eventIds } = visit;
  return {
    first_inside_at: formatIso(firstInsideMs),
    last_inside_at: formatIso(lastInsideMs),
    points,
    seconds: (lastInsideMs - firstInsideMs) / 1_000,
    deepest_m: deepestM,
    outcome,
    event_ids: eventIds,
  };
}

function gapView({ fromMs, toMs }: Gap) {
  return { from: formatIso(fromMs), to: formatIso(toMs), seconds: (toMs - fromMs) / 1_000 };
}

function noteView({ code, message, atMs }: Note) {
  return { code, message, at: formatIso(atMs) };
}

/** The decision about a point as the wire has it: `no_area` is a word of the engine. */
function decisionWord(decision: Decision) {
  return decision === 'no_area' ? 'area_did_not_exist' : decision;
}

/** A text for each point, in a quarter of the time of JSON.stringify: there may be 200 000. */
function stepJson({ recordedAtMs, receivedAtMs, late, distanceM, decision }: Step): string {
  const received = Number.isNaN(receivedAtMs) ? 'null' : `"${formatIso(receivedAtMs)}"`;
  return (
    `{"recorded_at":"${formatIso(recordedAtMs)}","received_at":${received},"late":${late}` +
    `,"inside":${distanceM <= 0},"distance_m":${distanceM},"decision":"${decisionWord(decision)}"}`
  );
}

/** The JSON before the lists. */
function explanationHead({ verdict, message, closest }: Explanation) {
  return {
    verdict,
    message,
    closest: closest === null ? null : { distance_m: closest.distanceM, at: formatIso(closest.atMs) },
  };
}

/** `{data, meta}` as JSON in parts of some hundred bytes: the steps of a window may be tens of megabytes. */
export function* explanationJson(explanation: Explanation, meta: object): Generator<string, void, undefined> {
  const { visits, gaps, notes, steps } = explanation;
  yield `{"data":${JSON.stringify(explanationHead(explanation)).slice(0, -1)},"visits":`;
  yield* listJson(visits.length, (n) => JSON.stringify(visitView(visits[n] as Visit)));
  yield ',"gaps":';
  yield* listJson(gaps.length, (n) => JSON.stringify(gapView(gaps[n] as Gap)));
  yield `,"notes":${JSON.stringify(notes.map(noteView))}`;
  if (steps !== null) {
    yield ',"steps":';
    yield* listJson(steps.count, (n) => stepJson(steps.at(n)));
  }
  yield `},"meta":${JSON.stringify(meta)}}`;
}

function* listJson(count: number, json: (n: number) => string): Generator<string, void, undefined> {
  yield '[';
  for (let n = 0; n < count; n++) yield n === 0 ? json(n) : `,${json(n)}`;
  yield ']';
}

type Lists = Readonly<Record<'visits' | 'gaps' | 'notes' | 'steps', unknown>>;

export const EXPLAIN_SCHEMAS = {
  Explanation: shapeOf<ReturnType<typeof explanationHead> & Lists>(
    {
      verdict: choice(
        VERDICTS,
        'What became of the device in the window. The last visit with an entry or exit decides; without one a visit that may still become an entry, then those that were too short.',
      ),
      message: text('A sentence for a person; it may change.'),
      closest: nullable({
        ...shapeOf<{ distance_m: number; at: string }>({
          distance_m: number('Metres to the boundary, negative inside.'),
          at: time('Its GPS time.'),
        }),
        description: 'The evaluated point nearest to the area, or deepest inside; null without one.',
      }),
      visits: list(ref('AreaVisit'), { description: 'By time.' }),
      gaps: list(ref('HistoryGap'), { description: 'More than 10 minutes without a point.' }),
      notes: list(ref('ExplanationNote'), {
        description: 'What the verdict does not show, and what cannot be known.',
      }),
      steps: list(ref('ExplainedPoint'), { description: 'With `steps=true`: every point, oldest first.' }),
    },
    { optional: ['steps'] },
  ),
  AreaVisit: shapeOf<ReturnType<typeof visitView>>(
    {
      first_inside_at: time('GPS time of the first point inside; may be before the window.'),
      last_inside_at: time('GPS time of the last point inside.'),
      points: integer('Points inside, in the window.', { minimum: 0 }),
      seconds: number('From the first point inside to the last.', { minimum: 0 }),
      deepest_m: {
        ...nullable(number(undefined, { minimum: 0 })),
        description:
          'How far from the boundary the point deepest inside was, in metres; null when none was in the window.',
      },
      outcome: choice(OUTCOMES),
      event_ids: list(ID, { description: 'The events of the visit in the window that the key may read.' }),
    },
    { description: 'One time inside the area.' },
  ),
  HistoryGap: shapeOf<ReturnType<typeof gapView>>({
    from: time('The last point before.'),
    to: time('The first point after.'),
    seconds: number(undefined, { minimum: 0 }),
  }),
  ExplanationNote: shapeOf<ReturnType<typeof noteView>>(
    {
      code: choice(NOTE_CODES),
      message: text('A sentence for a person; it may change.'),
      at: time('The time that it is about.'),
    },
    { optional: ['at'] },
  ),
  ExplainedPoint: shapeOf({
    recorded_at: time('Its GPS time.'),
    received_at: { ...nullable(time()), description: 'When it was stored; null: not recorded.' },
    late: {
      type: 'boolean',
      nullable: true,
      description: 'True: older than the newest point of its device, so stored only. null: not recorded.',
    },
    inside: { type: 'boolean', description: 'By the shape in force when it came.' },
    distance_m: number('Metres to the boundary, negative inside.'),
    decision: choice(DECISIONS.map(decisionWord), 'What the engine did with it.'),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

export const EXPLAIN_META = shapeOf<Readonly<Record<'window' | 'points', unknown>>>({
  window: shapeOf<{ from: string; to: string }>(
    { from: time(), to: time() },
    { description: 'The time that was read, both ends included.' },
  ),
  points: integer('Points in the window.', { minimum: 0 }),
});
