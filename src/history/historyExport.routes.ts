import { scopeMask } from '../access/scopes.ts';
import { ONE_DEVICE } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, CutAnswer, errorAnswer, NotBegun, type StreamedBody } from '../http/answer.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { text } from '../http/openapi/schema.ts';
import { choiceParameter, FROM, parameterError, readChoice, TO, WINDOW_MESSAGE } from '../http/parameters.ts';
import type { Call, Route } from '../http/route.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { MINUTE_MS } from '../lib/time.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import type { PointColumns } from './codec/pointColumns.ts';
import { EXPORT_FORMATS, EXPORT_TYPES, encoderOf, type HistoryEncoder } from './exportFormats.ts';
import type { TimeWindow } from './packedPoints.sql.ts';
import { DeviceGone, pointPages } from './points.sql.ts';
import { type HistoryReader, readHistoryCall } from './readHistoryCall.ts';

const EXPORT_FORMAT = choiceParameter('format', EXPORT_FORMATS, 'The kind of file.', 'ndjson');

/** The exports that one account may read from a pod at a time. */
const EXPORTS_PER_ACCOUNT = 2;
/** The exports of all accounts. Each takes one or two megabytes while its reader is slow. */
const EXPORTS = 64;
const TOO_MANY_EXPORTS = `${EXPORTS_PER_ACCOUNT} exports of this account are being read already; read one of them to its end first`;
/** How long a reader may take for what was sent: at most two megabytes. */
const STALL_LIMIT_MS = MINUTE_MS;

interface HistoryExportPorts {
  readonly fleet: Fleet;
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

/** All points of a device in a time, as a file that is made while it is read. */
export function historyExportRoute(ports: HistoryExportPorts): Route {
  const limits = { running: EXPORTS, runningPerKey: EXPORTS_PER_ACCOUNT, waiting: 0, waitingPerKey: 0 };
  const running = new FairSemaphore<number>(limits);
  return {
    method: 'GET',
    path: '/devices/:imei/history/export',
    scopes: scopeMask('read_history'),
    versions: ['v3'],
    describe: EXPORT_HISTORY,
    handle: (call) => exported(ports, running, call),
  };
}

function exported(ports: HistoryExportPorts, running: FairSemaphore<number>, call: Call): Answer {
  const { caller } = call;
  const asked = readHistoryCall(call);
  if (!asked.ok) return asked.error;
  const { imei, window } = asked.value;
  const format = readChoice(call.query, EXPORT_FORMAT) ?? 'ndjson';
  if (format === 'invalid') return parameterError(EXPORT_FORMAT);
  const device = ports.fleet.device(caller.worldIds, imei);
  if (device === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  const { id, name } = device.fields;
  const type = EXPORT_TYPES[format];
  return {
    status: 200,
    body: exportBody(ports, running, caller, id, window, () => encoderOf(format, { imei, name })),
    headers: {
      'Content-Type': format === 'csv' ? `${type}; charset=utf-8; header=present` : type,
      'Content-Disposition': `attachment; filename="${imei}.${format}"`,
      'Cache-Control': 'no-store',
    },
  };
}

/**
 * The file of an export. Begins when its first page is there, so what fails before has a status of its own. It holds no
 * connection between two pages, however slow its reader is.
 */
function exportBody(
  { reads, turns }: HistoryExportPorts,
  running: FairSemaphore<number>,
  { accountId, worldIds }: HistoryReader,
  deviceId: number,
  window: TimeWindow,
  newEncoder: () => HistoryEncoder,
): StreamedBody {
  const pages = pointPages(reads(accountId), worldIds, deviceId, window);
  let encoder: HistoryEncoder | null = null;
  let page: PointColumns | null = null;
  let isFirst = true;
  const readPage = async (): Promise<void> => {
    const { value, done } = await pages.next();
    page = done === true ? null : value;
  };
  return {
    bytes: null,
    stallLimitMs: STALL_LIMIT_MS,
    open: async () => {
      if (running.countOf(accountId) >= EXPORTS_PER_ACCOUNT)
        throw new NotBegun(errorAnswer('TOO_MANY_REQUESTS', TOO_MANY_EXPORTS));
      await running.acquire(accountId);
      try {
        await readPage();
        encoder = newEncoder();
      } catch (error) {
        running.release(accountId);
        throw error instanceof DeviceGone ? new NotBegun(errorAnswer('DEVICE_NOT_FOUND')) : error;
      }
    },
    next: async (take) => {
      if (encoder === null) return false;
      if (!isFirst) {
        await readPage().catch((error) => {
          throw error instanceof DeviceGone ? new CutAnswer() : error;
        });
      }
      isFirst = false;
      const steps = page === null ? encoder.finish(take) : encoder.encode(page, take);
      await turns.run(accountId, steps);
      return page !== null;
    },
    close: () => {
      if (encoder !== null) running.release(accountId);
    },
  };
}

const { ndjson, ...OTHER_TYPES } = EXPORT_TYPES;

const EXPORT_HISTORY: Operation = {
  id: 'exportPositionHistory',
  tag: 'Devices',
  summary: 'Read all points of a device in a time as a file',
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
