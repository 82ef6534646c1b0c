import { choiceParameter, type Parameter } from '../http/parameter.ts';
import { DEVICE, FROM, TO } from '../http/parameters.ts';
import { type Query, windowOf } from '../http/query.ts';
import { DAY_MS, formatDuration } from '../lib/durations.ts';
import { EXPLAIN_POINTS_MAX, EXPLAIN_WORK_MS } from './explanations.ts';

export const EXPLAIN_WINDOW_DAYS = 31;
const WINDOW_MS = EXPLAIN_WINDOW_DAYS * DAY_MS;

export const EXPLAIN_DEVICE: Parameter = {
  ...DEVICE,
  required: true,
  description: 'The IMEI of the device.',
};

export const EXPLAIN_FROM: Parameter = {
  ...FROM,
  description: `${FROM.description} Without it ${EXPLAIN_WINDOW_DAYS} days before \`to\`.`,
};

export const EXPLAIN_TO: Parameter = { ...TO, description: `${TO.description} Without it now.` };

export const STEPS = {
  ...choiceParameter('steps', ['true', 'false'], 'With every point of the window and what became of it.'),
  schema: { type: 'boolean', default: false },
} as const;

/** What a window that is so much too long is answered with. */
export function windowTooLong(excessMs: number): string {
  return `from and to are ${formatDuration(excessMs)} more than ${EXPLAIN_WINDOW_DAYS} days apart; narrow from or to`;
}

export function tooManyPoints(pointsMax = EXPLAIN_POINTS_MAX): string {
  return `the device has more than ${pointsMax} points between from and to; narrow from or to`;
}

export const TOO_MUCH_EXPLAIN_WORK = `the explanation takes more than ${formatDuration(EXPLAIN_WORK_MS)} of processor time; narrow from or to, or give the area fewer points`;

/** The window of a query, both ends included, not longer than is allowed; else what is wrong with it. */
export function explainWindowOf(
  query: Query,
  nowMs: number,
): { readonly fromMs: number; readonly toMs: number } | 'invalid' | { readonly excessMs: number } {
  const window = windowOf(query);
  if (window === 'invalid') return 'invalid';
  const toMs = window.toMs ?? nowMs;
  const fromMs = window.fromMs ?? toMs - WINDOW_MS;
  const excessMs = toMs - fromMs - WINDOW_MS;
  return excessMs > 0 ? { excessMs } : { fromMs, toMs };
}
