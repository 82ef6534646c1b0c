import { formatIso } from '../../base/isoTime.ts';
import {
  DECISIONS,
  type Explanation,
  type Gap,
  type Note,
  type StepColumns,
  type Visit,
} from '../../engine/explain/explanation.ts';
import { LATENESS } from '../../store/history/pointPages.ts';

/** Wire form of a visit. */
export function visitView(visit: Visit) {
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

export function gapView({ fromMs, toMs }: Gap) {
  return { from: formatIso(fromMs), to: formatIso(toMs), seconds: (toMs - fromMs) / 1_000 };
}

export function noteView({ code, message, atMs }: Note) {
  return { code, message, ...(atMs === undefined ? {} : { at: formatIso(atMs) }) };
}

/** The decision about a point as the wire has it: `no_area` is a word of the engine. */
export const STEP_DECISIONS = DECISIONS.map((decision) =>
  decision === 'no_area' ? 'area_did_not_exist' : decision,
);

export function stepView(steps: StepColumns, n: number) {
  const receivedAtMs = steps.receivedAtMs[n] as number;
  const late = steps.late[n];
  const distanceM = steps.distanceM[n] as number;
  return {
    recorded_at: formatIso(steps.recordedAtMs[n] as number),
    received_at: Number.isNaN(receivedAtMs) ? null : formatIso(receivedAtMs),
    late: late === LATENESS.notRecorded ? null : late === LATENESS.late,
    inside: distanceM <= 0,
    distance_m: distanceM,
    decision: STEP_DECISIONS[steps.decision[n] as number],
  };
}

/** What stands before the lists. */
export function explanationHead({ verdict, message, closest }: Explanation) {
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
  yield* listJson(visits.length, (n) => visitView(visits[n] as Visit));
  yield ',"gaps":';
  yield* listJson(gaps.length, (n) => gapView(gaps[n] as Gap));
  yield `,"notes":${JSON.stringify(notes.map(noteView))}`;
  if (steps !== null) {
    yield ',"steps":';
    yield* listJson(steps.recordedAtMs.length, (n) => stepView(steps, n));
  }
  yield `},"meta":${JSON.stringify(meta)}}`;
}

function* listJson(count: number, view: (n: number) => unknown): Generator<string, void, undefined> {
  yield '[';
  for (let n = 0; n < count; n++) yield `${n === 0 ? '' : ','}${JSON.stringify(view(n))}`;
  yield ']';
}
