import { scopeMask } from '../../access/scopes.ts';
import { type Answer, errorAnswer, type StreamedBody, TRAILER_HEADER } from '../../http/answer.ts';
import type { Operation } from '../../http/openapi/operation.ts';
import { text } from '../../http/openapi/schema.ts';
import {
  choiceParameter,
  isBlank,
  optionalParameter,
  type Parameter,
  parameterError,
  readChoice,
} from '../../http/parameters.ts';
import type { Call, Route } from '../../http/route.ts';
import type { Steps } from '../../lib/workTurns.ts';
import {
  EXPORTS_PER_ACCOUNT,
  type ExportParts,
  exportBody,
  type RunningExports,
  type Take,
} from '../exportFile.ts';
import { EXPORT_TYPES, type ExportFormat, encoderOf, fileHeaders } from '../exportFormats.ts';
import type { TimeWindow } from '../packedPoints.sql.ts';
import { PAGE_POINTS } from '../points.sql.ts';
import {
  FLEET_WINDOW_ERRORS,
  FLEET_WINDOW_PARAMETERS,
  type HistoryReader,
  readFleetWindow,
} from '../readHistoryCall.ts';
import { CHOICE_ERRORS, CHOICE_PARAMETERS, type DeviceChoice, readDeviceChoice } from './chosenDevices.ts';
import { type DevicePage, type FleetPointPorts, fleetPoints } from './fleetPoints.ts';

const FLEET_FORMATS = ['ndjson', 'csv', 'parquet'] as const satisfies readonly ExportFormat[];
const FLEET_FORMAT = choiceParameter('format', FLEET_FORMATS, 'The kind of file.', 'ndjson');
/** What the file is called, before its ending. */
const FILE_NAME = 'history';

const FEED_FORMATS = ['ndjson', 'csv'] as const satisfies readonly ExportFormat[];
const CURSOR: Parameter = optionalParameter(
  'cursor',
  'Instead of the times: all points that were stored since that cursor, late ones too. Blank: begins now. From the last line of NDJSON, or from the trailer `X-Next-Cursor`, of any pod. It is good for at least 24 hours; it belongs to the account.',
  { type: 'string', maxLength: 500 },
);
const CURSOR_ALONE_MESSAGE = 'send either cursor, or from, to and after';
const FEED_FORMAT_MESSAGE = `format must be one of ${FEED_FORMATS.join(', ')} with cursor`;
/** The error for a cursor that cannot be read. */
export const POINTS_CURSOR_MESSAGE =
  'cursor is not one that this service gave to this account for this route';
export const NEXT_CURSOR = 'X-Next-Cursor';

/** All points that were stored since a cursor. */
export interface PointFeedSource {
  /** `cursor`: blank where the feed begins now. */
  parts(
    reader: HistoryReader,
    choice: DeviceChoice,
    cursor: string,
    format: (typeof FEED_FORMATS)[number],
  ): ExportParts;
}

interface FleetExportPorts extends FleetPointPorts {
  readonly exports: RunningExports;
  readonly readers: { readonly pointFeed: PointFeedSource };
}

/** All points of all devices in a period, as a file that is generated while it is read. */
export function fleetExportRoute(ports: FleetExportPorts): Route {
  return {
    method: 'GET',
    path: '/history/export',
    scopes: scopeMask('read_history'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
    describe: EXPORT_FLEET_HISTORY,
    handle: (call) => exported(ports, call),
  };
}

function exported(ports: FleetExportPorts, { query, caller, nowMs }: Call): Answer {
  const format = readChoice(query, FLEET_FORMAT) ?? 'ndjson';
  if (format === 'invalid') return parameterError(FLEET_FORMAT);
  const choice = readDeviceChoice(query);
  if (!choice.ok) return choice.error;
  const cursor = query['cursor'];
  if (cursor !== undefined) {
    const others = [query['from'], query['to'], query['after']];
    if (others.some((other) => other !== undefined && !isBlank(other)))
      return errorAnswer('BAD_REQUEST', CURSOR_ALONE_MESSAGE);
    if (format === 'parquet') return errorAnswer('BAD_REQUEST', FEED_FORMAT_MESSAGE);
    const parts = ports.readers.pointFeed.parts(caller, choice.value, cursor.trim(), format);
    return {
      status: 200,
      body: exportBody(ports.exports, caller.accountId, parts),
      headers: { ...fileHeaders(format, FILE_NAME), [TRAILER_HEADER]: NEXT_CURSOR },
    };
  }
  const window = readFleetWindow(query, caller, nowMs);
  if (!window.ok) return window.error;
  return {
    status: 200,
    body: fileBody(ports, caller, choice.value, window.value, format),
    headers: fileHeaders(format, FILE_NAME),
  };
}

/** The file. Begins when the first points are there, so what fails before has a status of its own. */
function fileBody(
  ports: FleetExportPorts,
  reader: HistoryReader,
  choice: DeviceChoice,
  window: TimeWindow,
  format: ExportFormat,
): StreamedBody {
  const { turns, exports } = ports;
  const { accountId } = reader;
  const encoder = encoderOf(format, FILE_NAME);
  const parts = fleetPoints(ports, reader, choice, window);
  let pages: Iterator<DevicePage, void, undefined> | null = null;
  /** The page that is encoded next; null: `pages` has no more. */
  let next: DevicePage | null = null;
  const readPart = async (): Promise<void> => {
    const { value } = await parts.next();
    pages = value ?? null;
    next = pages?.next().value ?? null;
  };

  /** Encodes about a page of points, of however many devices. */
  function* encodePiece(take: Take): Steps<void> {
    for (let points = 0; next !== null && points < PAGE_POINTS; ) {
      const { imei, page }: DevicePage = next;
      yield* encoder.encode(imei, page, take);
      points += page.count;
      next = pages?.next().value ?? null;
      yield;
    }
  }

  return exportBody(exports, accountId, {
    begin: readPart,
    next: async (take) => {
      if (pages === null) {
        await turns.run(accountId, encoder.finish(take));
        return false;
      }
      await turns.run(accountId, encodePiece(take));
      if (next === null) await readPart();
      return true;
    },
    end: () => void parts.return(),
  });
}

const { ndjson, csv, parquet } = EXPORT_TYPES;

const EXPORT_FLEET_HISTORY: Operation = {
  id: 'exportFleetHistory',
  tag: 'Devices',
  summary: 'Export all points of many devices in a period as a file',
  description: `Points come by IMEI, and those of a device oldest first: exactly what its own export has. What lies further back than the plan of the account retains is left out, and so is the rest of a device that is deleted, or leaves what the key sees, while the file is made.

The file is made while it is read. When it cannot be finished, its connection is cut, so a file that ends without an error is whole. A reader that takes less than two megabytes a minute is cut off too.

An account has ${EXPORTS_PER_ACCOUNT} exports at a time on a pod, of one device or of many. The next is a \`429\`.`,
  parameters: [FLEET_FORMAT, ...FLEET_WINDOW_PARAMETERS, ...CHOICE_PARAMETERS, CURSOR],
  answers: [
    {
      status: 200,
      description: 'The file.',
      contentType: ndjson,
      fileTypes: [csv, parquet],
      schema: text(undefined, { format: 'binary' }),
    },
  ],
  errors: [
    ['BAD_REQUEST', FLEET_FORMAT.errorMessage],
    ...CHOICE_ERRORS,
    ...FLEET_WINDOW_ERRORS,
    ['BAD_REQUEST', CURSOR_ALONE_MESSAGE],
    ['BAD_REQUEST', FEED_FORMAT_MESSAGE],
    ['BAD_REQUEST', POINTS_CURSOR_MESSAGE],
    'CURSOR_EXPIRED',
  ],
};
