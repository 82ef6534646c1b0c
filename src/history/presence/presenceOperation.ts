import { EXAMPLE_NOW_MS, EXAMPLE_VAN } from '../../devices/deviceExamples.ts';
import { answered, dataBody } from '../../http/openapi/body.ts';
import { envelope } from '../../http/openapi/commonSchemas.ts';
import type { Operation } from '../../http/openapi/operation.ts';
import { list, ref } from '../../http/openapi/schema.ts';
import { COORDINATES_MESSAGE, WINDOW_MESSAGE } from '../../http/parameters.ts';
import { presenceMeta, presenceView } from '../presenceViews.ts';
import {
  AREA_ID,
  AREA_ID_MESSAGE,
  PLACE_MESSAGE,
  PRESENCE_FROM,
  PRESENCE_LAT,
  PRESENCE_LIMIT,
  PRESENCE_LNG,
  PRESENCE_TO,
  RADIUS_M,
  SPAN_MESSAGE,
  TOO_MANY_PRESENCE_POINTS,
  TOO_MUCH_PRESENCE_WORK,
} from './presenceParameters.ts';
import { PRESENCE_META } from './presenceSchemas.ts';

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

export const FIND_PRESENCE: Operation = {
  id: 'findPresence',
  tag: 'Devices',
  summary: 'Find which devices were at a place in a time',
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
    ['BAD_REQUEST', RADIUS_M.errorMessage],
    ['BAD_REQUEST', AREA_ID_MESSAGE],
    ['BAD_REQUEST', WINDOW_MESSAGE],
    ['BAD_REQUEST', SPAN_MESSAGE],
    ['BAD_REQUEST', TOO_MANY_PRESENCE_POINTS],
    ['BAD_REQUEST', TOO_MUCH_PRESENCE_WORK],
    'NOT_FOUND',
  ],
};
