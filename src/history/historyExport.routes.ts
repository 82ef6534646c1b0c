import { scopeMask } from '../access/scopes.ts';
import { ONE_DEVICE } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, CutAnswer, errorAnswer, NotBegun, type StreamedBody } from '../http/answer.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { text } from '../http/openapi/schema.ts';
import { choiceParameter, FROM, parameterError, readChoice, TO, WINDOW_MESSAGE } from '../http/parameters.ts';
import type { Call, Route } from '../http/route.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import type { PointColumns } from './codec/pointColumns.ts';
import { EXPORTS_PER_ACCOUNT, exportBody, type HistoryEncoder, type RunningExports } from './exportFile.ts';
import { EXPORT_FORMATS, EXPORT_TYPES, encoderOf, fileHeaders } from './exportFormats.ts';
import type { TimeWindow } from './packedPoints.sql.ts';
import { DeviceGone, pointPages } from './points.sql.ts';
import { type HistoryReader, readHistoryCall } from './readHistoryCall.ts';

const EXPORT_FORMAT = choiceParameter('format', EXPORT_FORMATS, 'The kind of file.', 'ndjson');

interface HistoryExportPorts {
  readonly fleet: Fleet;
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
  readonly exports: RunningExports;
}

/** All points of a device in a period, as a file that is generated while it is read. */
export function historyExportRoute(ports: HistoryExportPorts): Route {
  return {
    method: 'GET',
    path: '/devices/:imei/history/export',
    scopes: scopeMask('read_history'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
    describe: EXPORT_HISTORY,
    handle: (call) => exported(ports, call),
  };
}

function exported(ports: HistoryExportPorts, call: Call): Answer {
  const { caller } = call;
  const asked = readHistoryCall(call);
  if (!asked.ok) return asked.error;
  const { imei, window } = asked.value;
  const format = readChoice(call.query, EXPORT_FORMAT) ?? 'ndjson';
  if (format === 'invalid') return parameterError(EXPORT_FORMAT);
  const device = ports.fleet.device(caller.worldIds, imei);
  if (device === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  const { id, name } = device.fields;
  return {
    status: 200,
    body: fileBody(ports, caller, { id, imei }, window, () => encoderOf(format, name ?? imei)),
    headers: fileHeaders(format, imei),
  };
}

/**
 * The file of an export. Begins when its first page is there, so what fails before has a status of its own. It holds no
 * connection between two pages, however slow its reader is.
 */
function fileBody(
  { reads, turns, exports }: HistoryExportPorts,
  { accountId, worldIds }: HistoryReader,
  { id, imei }: { readonly id: number; readonly imei: string },
  window: TimeWindow,
  newEncoder: () => HistoryEncoder,
): StreamedBody {
  const pages = pointPages(reads(accountId), worldIds, id, window);
  let encoder: HistoryEncoder | null = null;
  let page: PointColumns | null = null;
  let isFirst = true;
  const readPage = async (whenGone: () => Error): Promise<void> => {
    try {
      const { value, done } = await pages.next();
      page = done === true ? null : value;
    } catch (error) {
      throw error instanceof DeviceGone ? whenGone() : error;
    }
  };
  return exportBody(exports, accountId, {
    begin: async () => {
      await readPage(() => new NotBegun(errorAnswer('DEVICE_NOT_FOUND')));
      encoder = newEncoder();
    },
    next: async (take) => {
      if (encoder === null) return false;
      if (!isFirst) await readPage(() => new CutAnswer());
      isFirst = false;
      await turns.run(accountId, page === null ? encoder.finish(take) : encoder.encode(imei, page, take));
      return page !== null;
    },
  });
}

const { ndjson, ...OTHER_TYPES } = EXPORT_TYPES;

const EXPORT_HISTORY: Operation = {
  id: 'exportPositionHistory',
  tag: 'Devices',
  summary: 'Export all points of a device in a period as a file',
  description: `Oldest first, without a limit, made while it is read. A file that ends early is not whole: its connection is cut. Who takes less than two megabytes a minute is cut off. An account has ${EXPORTS_PER_ACCOUNT} exports at a time on a pod; the next is ${'`'}429${'`'}. What lies further back than the plan of the account retains is left out.`,
  parameters: [EXPORT_FORMAT, FROM, TO],
  answers: [
    {
      status: 200,
      description: 'The file.',
      contentType: ndjson,
      fileTypes: Object.values(OTHER_TYPES),
      schema: text(undefined, { format: 'binary' }),
    },
  ],
  errors: [...ONE_DEVICE, ['BAD_REQUEST', WINDOW_MESSAGE], ['BAD_REQUEST', EXPORT_FORMAT.errorMessage]],
};
