import { isUnseen, type Worlds } from '../../access/credentials.ts';
import type { Device } from '../../devices/device.ts';
import { IMEI, isImei } from '../../devices/device.ts';
import type { Fleet } from '../../devices/fleet.memory.ts';
import { type Answer, errorAnswer } from '../../http/answer.ts';
import type { DescribedError } from '../../http/openapi/operation.ts';
import { isBlank, optionalParameter, type Parameter, type Query } from '../../http/parameters.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';

const GROUPS_MAX = 20;
/** The most that fit into a parameter. */
const DEVICES_MAX = 100;

/** The parameters of a call about the histories of many devices. */
export const CHOICE_PARAMETERS: readonly Parameter[] = [
  {
    ...optionalParameter('group', `Only devices of one of these groups: at most ${GROUPS_MAX} names.`, {
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      maxItems: GROUPS_MAX,
    }),
    explode: false,
  },
  {
    ...optionalParameter(
      'devices',
      `Only these devices, instead of \`group\`: at most ${DEVICES_MAX} IMEIs. Unknown ones are left out.`,
      {
        type: 'array',
        items: { type: 'string', pattern: IMEI.source },
        minItems: 1,
        maxItems: DEVICES_MAX,
      },
    ),
    explode: false,
  },
  optionalParameter(
    'after',
    'Only devices behind this IMEI. To go on with a file that was cut off, send the last IMEI that you have whole.',
    { type: 'string', pattern: IMEI.source },
  ),
];

const GROUP_MESSAGE = `group must be a comma-separated list of 1 to ${GROUPS_MAX} names`;
const DEVICES_MESSAGE = `devices must be a comma-separated list of 1 to ${DEVICES_MAX} IMEIs of 14 to 17 digits`;
const BOTH_MESSAGE = 'send either group or devices';
const AFTER_MESSAGE = 'after must be an IMEI of 14 to 17 digits';

export const CHOICE_ERRORS: readonly DescribedError[] = [
  ['BAD_REQUEST', GROUP_MESSAGE],
  ['BAD_REQUEST', DEVICES_MESSAGE],
  ['BAD_REQUEST', BOTH_MESSAGE],
  ['BAD_REQUEST', AFTER_MESSAGE],
];

/** Which of the devices that a key sees are meant. */
export interface DeviceChoice {
  /** Only devices of one of these groups; null: all devices. */
  readonly groups: ReadonlySet<string> | null;
  /** Only these IMEIs, in their order; null: all. */
  readonly imeis: readonly string[] | null;
  /** Only devices after this IMEI; null: all. */
  readonly afterImei: string | null;
}

/** The choice that a query makes. A blank `devices` is an error: a caller without IMEIs does not mean the whole fleet. */
export function readDeviceChoice(query: Query): Result<DeviceChoice, Answer> {
  const [group, devices, after = ''] = [query['group'], query['devices'], query['after']];
  const groups = group === undefined || isBlank(group) ? null : itemsOf(group);
  const imeis = devices === undefined ? null : itemsOf(devices);
  if (groups !== null && imeis !== null) return refusal(BOTH_MESSAGE);
  if (groups !== null && (groups.length > GROUPS_MAX || groups.includes(''))) return refusal(GROUP_MESSAGE);
  if (imeis !== null && (imeis.length > DEVICES_MAX || !imeis.every(isImei))) return refusal(DEVICES_MESSAGE);
  if (!isBlank(after) && !isImei(after)) return refusal(AFTER_MESSAGE);
  return ok({
    groups: groups === null ? null : new Set(groups),
    imeis: imeis === null ? null : [...new Set(imeis)].sort(),
    afterImei: isBlank(after) ? null : after,
  });
}

function itemsOf(list: string): string[] {
  return list.split(',').map((item) => item.trim());
}

function refusal(message: string): Result<never, Answer> {
  return fail(errorAnswer('BAD_REQUEST', message));
}

/** Before every IMEI. */
const BEFORE_ALL = '0';
/** How many devices are examined between two readings of the clock. */
const DEVICES_PER_LOOK = 64;

/**
 * The first `limit` devices of one or two worlds that are chosen and behind an IMEI, in the order of IMEIs. Fewer than the
 * limit: they are the last ones. They are read, and do not change. Devices may come and go between two steps.
 */
export function* chosenDevices(
  fleet: Fleet,
  worldIds: Worlds,
  { groups, imeis }: DeviceChoice,
  afterImei: string | null,
  limit: number,
): Steps<Device[]> {
  if (imeis !== null) {
    return imeis
      .filter((imei) => afterImei === null || imei > afterImei)
      .map((imei) => fleet.device(worldIds, imei))
      .filter((device) => device !== undefined)
      .slice(0, limit);
  }
  const pace = new Pace();
  const chosen: Device[] = [];
  for (let last = afterImei ?? BEFORE_ALL; ; ) {
    const page = fleet.listed(worldIds, last, DEVICES_PER_LOOK).map(({ device }) => device.taken());
    for (const device of page) {
      if (isUnseen(worldIds, device.groups)) continue;
      if (groups !== null && !device.groups.some((group) => groups.has(group))) continue;
      if (chosen.push(device) === limit) return chosen;
    }
    const end = page.at(-1);
    if (end === undefined || page.length < DEVICES_PER_LOOK) return chosen;
    last = end.imei;
    if (pace.isDue()) yield* pace.pause();
  }
}
