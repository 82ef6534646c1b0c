import { scopeMask } from '../../access/scopes.ts';
import type { Device } from '../../devices/device.ts';
import { DEVICE_NAMES, EXAMPLE_SILENT_DEVICE, EXAMPLE_VAN } from '../../devices/deviceSchemas.ts';
import type { Answer } from '../../http/answer.ts';
import { answered, dataBody, type Operation } from '../../http/openapi/operation.ts';
import {
  choice,
  envelope,
  list,
  nullable,
  ref,
  type Schema,
  shapeOf,
  text,
  time,
} from '../../http/openapi/schema.ts';
import { choiceParameter, parameterError, readChoice } from '../../http/parameters.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../../http/route.ts';
import { formatIso } from '../../lib/time.ts';
import {
  EXPORTS_PER_ACCOUNT,
  exportBody,
  newRunningExports,
  type RunningExports,
  type Take,
} from '../exportFile.ts';
import { fileHeaders } from '../exportFormats.ts';
import type { TimeWindow } from '../packedPoints.sql.ts';
import { FLEET_WINDOW_ERRORS, FLEET_WINDOW_PARAMETERS, readFleetWindow } from '../readHistoryCall.ts';
import type { Period } from '../summary/calendarLedger.ts';
import type { LocalDays } from '../summary/localDays.ts';
import type { SummaryPeriods } from '../summary/summary.ts';
import {
  EXAMPLE_DAYS,
  EXAMPLE_EMPTY_PERIOD,
  EXAMPLE_PERIOD,
  EXAMPLE_SUMMARY_QUERY,
  PERIOD_FIELDS,
  periodView,
  readTimeZone,
  TIME_ZONE,
} from '../summary/summaryView.ts';
import { CHOICE_ERRORS, CHOICE_PARAMETERS, type DeviceChoice, readDeviceChoice } from './chosenDevices.ts';
import {
  FLEET_SUMMARY_FORMATS,
  FLEET_SUMMARY_TYPES,
  type FleetPeriodView,
  fleetPeriodView,
  fleetSummaryEncoder,
} from './fleetSummaryText.ts';
import { type DeviceSummary, type FleetSummaryPorts, summarizeFleet } from './summarizeFleet.ts';

const FLEET_SUMMARY_BY = choiceParameter(
  'by',
  ['total', 'day'],
  'The periods to add up: the whole time, or days.',
  'total',
);
const FORMAT = choiceParameter('format', FLEET_SUMMARY_FORMATS, 'The kind of file.', 'json');

/** What each device of a fleet did during a period, as a file that is generated while it is read. */
export function fleetSummaryRoute(ports: FleetSummaryPorts): Route {
  const running = newRunningExports();
  return {
    method: 'GET',
    path: '/history/summary',
    scopes: scopeMask('read_history_summary'),
    isOpenToGroups: true,
    versions: BOTH_VERSIONS,
    shedAs: 'bulk',
    describe: SUMMARIZE_FLEET,
    handle: (call) => fleetSummary(ports, running, call),
  };
}

function fleetSummary(ports: FleetSummaryPorts, running: RunningExports, call: Call): Answer {
  const { caller, query, nowMs } = call;
  const { accountId } = caller;
  const by = readChoice(query, FLEET_SUMMARY_BY) ?? 'total';
  if (by === 'invalid') return parameterError(FLEET_SUMMARY_BY);
  const zone = readTimeZone(query);
  if (zone === null) return parameterError(TIME_ZONE);
  const format = readChoice(query, FORMAT) ?? 'json';
  if (format === 'invalid') return parameterError(FORMAT);
  const chosen = readDeviceChoice(query);
  if (!chosen.ok) return chosen.error;
  const window = readFleetWindow(query, caller, nowMs);
  if (!window.ok) return window.error;
  const request = { by, days: zone.days, ...window.value };
  const summaries = summarizeFleet(ports, caller, chosen.value, request);
  const meta = fleetSummaryMeta({ ...request, tz: zone.tz }, chosen.value);
  const encoder = fleetSummaryEncoder(format, meta, by === 'day' ? zone.days : null);
  let next: IteratorResult<readonly DeviceSummary[], void>;
  const readNext = async (): Promise<void> => {
    next = await summaries.next();
  };
  const parts = {
    begin: readNext,
    next: async (take: Take) => {
      if (next.done === true) {
        encoder.finish(take);
        return false;
      }
      await ports.turns.run(accountId, encoder.encode(next.value, take));
      await readNext();
      return true;
    },
    end: () => void summaries.return(),
  };
  return {
    status: 200,
    body: exportBody(running, accountId, parts, 'summaries'),
    headers: format === 'json' ? JSON_HEADERS : fileHeaders(format, 'summary'),
  };
}

const JSON_HEADERS = {
  'Content-Type': `${FLEET_SUMMARY_TYPES.json}; charset=utf-8`,
  'Cache-Control': 'no-store',
};

type FleetSummaryMeta = ReturnType<typeof fleetSummaryMeta>;

/** `meta` of the summaries: what was asked for, as it was used. */
function fleetSummaryMeta(
  { fromMs, toMs, by, tz }: TimeWindow & { readonly by: SummaryPeriods; readonly tz: string },
  { groups, imeis, afterImei }: DeviceChoice,
) {
  return {
    query: {
      from: formatIso(fromMs),
      to: formatIso(toMs),
      by,
      tz,
      group: groups && [...groups],
      devices: imeis,
      after: afterImei,
    },
  };
}

const { imei, name, plate } = DEVICE_NAMES;

export const FLEET_SUMMARY_SCHEMAS = {
  DevicePeriod: shapeOf<FleetPeriodView>(
    { device: shapeOf<FleetPeriodView['device']>({ imei, name, plate }), ...PERIOD_FIELDS },
    { optional: ['date'] },
  ),
} as const satisfies Readonly<Record<string, Schema>>;

const FLEET_SUMMARY_META: Schema = shapeOf<FleetSummaryMeta>({
  query: shapeOf<FleetSummaryMeta['query']>(
    {
      from: time('Not earlier than the plan retains.'),
      to: time(),
      by: choice(FLEET_SUMMARY_BY.values),
      tz: text(),
      group: nullable(list(text())),
      devices: nullable(list(text())),
      after: nullable(text()),
    },
    { description: 'The parameters as they were used.' },
  ),
});

const EVERYBODY: DeviceChoice = { groups: null, imeis: null, afterImei: null };
const QUERY = { ...EXAMPLE_SUMMARY_QUERY, by: 'total' } as const;

const exampleOf = (device: Device, period: Period, days: LocalDays | null) =>
  fleetPeriodView(device.fields, periodView(period, days));

const JSON_ANSWER = answered(
  200,
  'The periods of each device.',
  envelope(list(ref('DevicePeriod')), FLEET_SUMMARY_META),
  {
    'a day of a van': dataBody(
      [exampleOf(EXAMPLE_VAN, EXAMPLE_PERIOD, EXAMPLE_DAYS)],
      fleetSummaryMeta(EXAMPLE_SUMMARY_QUERY, EVERYBODY),
    ),
    'two vehicles, one of them silent': dataBody(
      [
        exampleOf(EXAMPLE_VAN, EXAMPLE_PERIOD, null),
        exampleOf(EXAMPLE_SILENT_DEVICE, EXAMPLE_EMPTY_PERIOD, null),
      ],
      fleetSummaryMeta(QUERY, EVERYBODY),
    ),
  },
);

const SUMMARIZE_FLEET: Operation = {
  id: 'summarizeFleet',
  tag: 'Devices',
  summary: 'Summarize what each device did: in total, or by day',
  description: `For each device, ordered by IMEI, what its own summary gives, with the device in front. In all there is one period for each device. By day there is one for each day with points. The window has at most 31 days; what lies further back than the plan of the account retains is left out.

As a file (NDJSON or CSV) all chosen devices come in one answer, a period on each line. In CSV \`first\` and \`last\` are three columns each, and what is null is empty. The file is made while it is read. When it cannot be finished, its connection is cut: read it again, or go on with \`after\` behind the last device that you have whole. A device that is deleted meanwhile is left out. A reader that takes less than two megabytes a minute is cut off.

An account has ${EXPORTS_PER_ACCOUNT} of these calls at a time on a pod. The next is a \`429\`.`,
  parameters: [...FLEET_WINDOW_PARAMETERS, FLEET_SUMMARY_BY, TIME_ZONE, FORMAT, ...CHOICE_PARAMETERS],
  answers: [{ ...JSON_ANSWER, fileTypes: [FLEET_SUMMARY_TYPES.csv, FLEET_SUMMARY_TYPES.ndjson] }],
  errors: [
    ['BAD_REQUEST', FLEET_SUMMARY_BY.errorMessage],
    ['BAD_REQUEST', TIME_ZONE.errorMessage],
    ['BAD_REQUEST', FORMAT.errorMessage],
    ...CHOICE_ERRORS,
    ...FLEET_WINDOW_ERRORS,
  ],
};
