import { ONE_AREA } from '../areas/areaOperations.ts';
import { IMEI_MESSAGE } from '../devices/imeiParameter.ts';
import { answered } from '../http/openapi/body.ts';
import { envelope } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import { WINDOW_MESSAGE } from '../http/parameters.ts';
import { DAY_MS, formatDuration } from '../lib/durations.ts';
import { EXAMPLE_EXPLANATIONS } from './explainExamples.ts';
import { explanationJson } from './explainJson.ts';
import {
  EXPLAIN_DEVICE,
  EXPLAIN_FROM,
  EXPLAIN_TO,
  EXPLAIN_WINDOW_DAYS,
  STEPS,
  TOO_MUCH_EXPLAIN_WORK,
  tooManyPoints,
  windowTooLong,
} from './explainParameters.ts';
import { EXPLAIN_META } from './explainSchemas.ts';
import { EXPLAIN_POINTS_MAX, EXPLAIN_WORK_MS } from './explanations.ts';

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
