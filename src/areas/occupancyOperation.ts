import { EXAMPLE_NOW_MS, EXAMPLE_VAN } from '../devices/deviceExamples.ts';
import { occupantView, type Used, usageView } from '../devices/deviceViews.ts';
import { OCCUPANT_STATES } from '../devices/occupants.memory.ts';
import { answered, dataBody } from '../http/openapi/body.ts';
import { envelope, pageMeta } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { integer, list, ref, type Schema, shapeOf } from '../http/openapi/schema.ts';
import { choiceParameter } from '../http/parameter.ts';
import { LIST_LIMIT, OFFSET } from '../http/parameters.ts';
import { EXAMPLE_CIRCLE } from './areaExamples.ts';
import { ONE_AREA } from './areaOperations.ts';

export const OCCUPANT_STATE = choiceParameter(
  'state',
  OCCUPANT_STATES,
  '`inside`: only devices whose entry is made. `pending`: only those that have not stayed for `dwell_seconds` yet.',
  'all',
);

const { dwellSeconds } = EXAMPLE_CIRCLE.definition;
const STAY = { areaId: EXAMPLE_CIRCLE.id, device: EXAMPLE_VAN };
const LAST_MS = EXAMPLE_VAN.position.recordedAtMs;
const ENTERED = { ...STAY, insideSinceMs: LAST_MS - 500_000, confirmedAtMs: LAST_MS - 150_000 };
const PENDING = { ...STAY, insideSinceMs: LAST_MS - 45_000, confirmedAtMs: null };
const PAGE_META = { pagination: { limit: LIST_LIMIT.fallback, offset: 0, count: 1 }, total: 1 };

export const AREA_DEVICES: Operation = {
  id: 'listAreaDevices',
  tag: 'Areas',
  summary: 'List the devices that are in an area',
  description:
    'By the stays that produce entries and exits: GPS points and the minimum stay, so a device is in the area until its next point says otherwise. Those that the key can see, longest stay first, then by IMEI. `meta.total` counts all of the state.',
  parameters: [OCCUPANT_STATE, LIST_LIMIT, OFFSET],
  answers: [
    answered(
      200,
      'A page of devices.',
      envelope(
        list(ref('AreaDevice')),
        pageMeta({ total: integer('How many devices there are in this state.', { minimum: 0 }) }),
      ),
      {
        inside: dataBody([occupantView(ENTERED, dwellSeconds, EXAMPLE_NOW_MS)], PAGE_META),
        pending: dataBody([occupantView(PENDING, 120, EXAMPLE_NOW_MS)], PAGE_META),
      },
    ),
  ],
  errors: [...ONE_AREA, ['BAD_REQUEST', OCCUPANT_STATE.errorMessage]],
};

const EXAMPLE_QUOTA = { areas: 12, vertices: 480, maxAreas: 20_000, maxVertices: 4_000_000 };
const usedOf = (description: string): Schema => ({
  ...shapeOf<Used>({
    used: integer('How many there are.', { minimum: 0 }),
    limit: integer('How many the plan allows.', { minimum: 0 }),
  }),
  description,
});

export const USAGE: Operation = {
  id: 'getUsage',
  tag: 'Areas',
  summary: 'Show how much the account has of what its plan allows',
  description:
    'Beyond `areas` and `vertices` nothing is created (422 `LIMIT_REACHED`). Beyond `stays` a device that comes into one more area begins no stay there, so there is no entry, until there is room again.',
  parameters: [],
  answers: [
    answered(
      200,
      'The counts with their limits.',
      envelope(
        shapeOf<ReturnType<typeof usageView>>({
          areas: usedOf('Areas that the account made, shared ones too.'),
          vertices: usedOf('Their vertices; circles and places have none.'),
          stays: usedOf('Devices in these areas, one for each device and area, pending ones too.'),
        }),
      ),
      { some: dataBody(usageView(EXAMPLE_QUOTA, { used: 31, limit: 2_000_000 })) },
    ),
  ],
  errors: [],
};
