import { EXAMPLE_CIRCLE } from '../areas/areaView.ts';
import { compileShape } from '../areas/shape.ts';
import { formatIso } from '../lib/isoTime.ts';
import { inOneGo } from '../lib/workTurns.ts';
import { explanationOf } from './explain.ts';
import type { RecordedEvent } from './explanation.ts';
import { PointReplay } from './pointReplay.ts';
import type { Situation } from './situations.ts';

// Explanations that the code itself makes of a few points.

const { id: areaId, definition, createdAtMs } = EXAMPLE_CIRCLE;
const { geometry, dwellSeconds } = definition;
const SHAPE = compileShape(geometry);
const CENTER = 'center' in geometry ? geometry.center : { lat: 0, lng: 0 };
const FROM_MS = Date.UTC(2026, 2, 2, 8);
const TO_MS = FROM_MS + 3_600_000;
const OUTSIDE = { lat: CENTER.lat + 0.05, lng: CENTER.lng };

function explained(
  times: readonly (readonly [seconds: number, place: typeof OUTSIDE])[],
  options: {
    readonly recorded: readonly RecordedEvent[];
    readonly withSteps: boolean;
  },
) {
  const atMs = times.map(([seconds]) => FROM_MS + seconds * 1_000);
  const situations: readonly Situation[] = [
    { sinceMs: createdAtMs, state: 'watched', shape: { compiled: () => SHAPE }, dwellSeconds, isKnown: true },
  ];
  const { recorded, withSteps } = options;
  const replay = new PointReplay({
    areaId,
    situations,
    fromMs: FROM_MS,
    stay: null,
    refused: null,
    withSteps,
  });
  replay.expect(recorded);
  inOneGo(
    replay.take({
      count: times.length,
      recordedAtMs: Float64Array.from(atMs),
      lats: Float64Array.from(times, ([, { lat }]) => lat),
      lngs: Float64Array.from(times, ([, { lng }]) => lng),
      receivedAtMs: Float64Array.from(atMs, (ms) => ms + 812),
      lates: new Float64Array(times.length),
    }),
  );
  replay.end();
  const names = { device: 'Van 12', area: definition.name, areaCreatedAtMs: createdAtMs, toMs: TO_MS };
  const window = { from: formatIso(FROM_MS), to: formatIso(TO_MS) };
  return {
    explanation: explanationOf(replay, situations, names, null),
    meta: { window, points: replay.findings.points },
  };
}

const ENTERED_MS = FROM_MS + 600_000;
const LEFT_MS = FROM_MS + (600 + 2 * dwellSeconds) * 1_000;
const recorded = (id: number, direction: 'entry' | 'exit', occurredAtMs: number): RecordedEvent => ({
  ...{ id, direction, occurredAtMs },
  enteredAtMs: ENTERED_MS,
  isReadable: true,
});

export const EXAMPLE_EXPLANATIONS = {
  tooShort: explained(
    [
      [540, OUTSIDE],
      [600, CENTER],
      [642, CENTER],
      [700, OUTSIDE],
    ],
    { recorded: [], withSteps: false },
  ),
  left: explained(
    [
      [540, OUTSIDE],
      [600, CENTER],
      [600 + dwellSeconds, CENTER],
      [600 + 2 * dwellSeconds, OUTSIDE],
    ],
    {
      recorded: [
        recorded(81_204, 'entry', ENTERED_MS + dwellSeconds * 1_000),
        recorded(81_250, 'exit', LEFT_MS),
      ],
      withSteps: true,
    },
  ),
};
