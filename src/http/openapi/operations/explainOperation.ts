import { DAY_MS, formatDuration } from '../../../base/durations.ts';
import { EXPLAIN_POINTS_MAX, EXPLAIN_WORK_MS } from '../../../flows/explain/explanations.ts';
import { explanationJson } from '../../answers/explainJson.ts';
import {
  EXPLAIN_DEVICE,
  EXPLAIN_FROM,
  EXPLAIN_TO,
  EXPLAIN_WINDOW_DAYS,
  STEPS,
  TOO_MUCH_EXPLAIN_WORK,
  tooManyPoints,
  windowTooLong,
} from '../../parameters/explainParameters.ts';
import { IMEI_MESSAGE } from '../../parameters/imei.ts';
import { WINDOW_MESSAGE } from '../../parameters/parameters.ts';
import { answered } from '../examples/body.ts';
import { EXAMPLE_EXPLANATIONS } from '../examples/explain.ts';
import { envelope } from '../schemas/commonSchemas.ts';
import { EXPLAIN_META } from '../schemas/explainSchemas.ts';
import { ref } from '../schemas/schema.ts';
import { ONE_AREA } from './areaOperations.ts';
import type { Operation } from './operation.ts';

const exampleBody = ({ explanation, meta }: (typeof EXAMPLE_EXPLANATIONS)['tooShort']): unknown =>
  JSON.parse([...explanationJson(explanation, meta)].join(''));

export const EXPLAIN_AREA: Operation = {
  id: 'explainArea',
  tag: 'Areas',
  summary: 'Say why an area reported what it did of a device, or why it did not',
  description: `Replays the stored points of a device, as they came, by the rule that decided on them, against the shape, the minimum stay and the owners that were in force when each came. \`event_ids\` are those of GET /areas/{id}/events in the same window. What cannot be known is a note, and is not guessed. Nothing is stored, sent or counted.

A window of at most ${EXPLAIN_WINDOW_DAYS} days, ${EXPLAIN_POINTS_MAX} points and ${formatDuration(EXPLAIN_WORK_MS)} of processor time; an account has one at a time on a pod, others wait. What lies further back than the plan of the account retains is left out (\`history_trimmed\`).`,
  parameters: [EXPLAIN_DEVICE, EXPLAIN_FROM, EXPLAIN_TO, STEPS],
  answers: [
    answered(200, 'The explanation.', envelope(ref('Explanation'), EXPLAIN_META), {
      'passed through': exampleBody(EXAMPLE_EXPLANATIONS.tooShort),
      'entered and left, with steps': exampleBody(EXAMPLE_EXPLANATIONS.left),
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
