import { scopeMask } from '../access/scopes.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { ONE_DEVICE } from '../devices/imei.ts';
import { type Answer, CutAnswer, errorAnswer, NotBegun, type StreamedBody } from '../http/answer.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { text } from '../http/openapi/schema.ts';
import {
  choiceParameter,
  FROM,
  parameterError,
  type Query,
  readChoice,
  TO,
  WINDOW_MESSAGE,
} from '../http/parameters.ts';
import type { Call, Route } from '../http/route.ts';
import { Overloaded } from '../lib/fairSemaphore.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { MINUTE_MS } from '../lib/time.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import type { PointColumns } from './codec/pointColumns.ts';
import {
  EXPORT_FORMATS,
  EXPORT_TYPES,
  type ExportFormat,
  encoderOf,
  type HistoryEncoder,
} from './exportFormats.ts';
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
  readonly exports: HistoryExports;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

/** All points of a device in a time, as a file that is made while it is read. */
export function historyExportRoute(ports: HistoryExportPorts): Route {
  return {
    method: 'GET',
    path: '/devices/:imei/history/export',
    scopes: scopeMask('read_history'),
    versions: ['v3'],
    describe: EXPORT_HISTORY,
    handle: (call) => exported(ports, call),
  };
}

function exported({ fleet, exports, turns }: HistoryExportPorts, call: Call): Answer {
  const { caller } = call;
  const asked = readHistoryCall(fleet, call, readFormat);
  if (!asked.ok) return asked.error;
  const { device, window, own: format } = asked.value;
  const { id, imei, name } = device.fields;
  const body = new ExportBody({
    open: () => exports.open(caller, id, window),
    encoder: () => encoderOf(format, { imei, name }),
    turns,
    accountId: caller.accountId,
  });
  return { status: 200, body, headers: headersOf(format, imei) };
}

function readFormat(query: Query): Result<ExportFormat, Answer> {
  const format = readChoice(query, EXPORT_FORMAT) ?? 'ndjson';
  return format === 'invalid' ? fail(parameterError(EXPORT_FORMAT)) : ok(format);
}

function headersOf(format: ExportFormat, imei: string): Record<string, string> {
  const type = EXPORT_TYPES[format];
  return {
    'Content-Type': format === 'csv' ? `${type}; charset=utf-8; header=present` : type,
    'Content-Disposition': `attachment; filename="${imei}.${format}"`,
    'Cache-Control': 'no-store',
  };
}

interface ExportSource {
  readonly open: () => Promise<OpenExport | 'too_many' | 'gone'>;
  readonly encoder: () => HistoryEncoder;
  readonly turns: WorkTurns<string | number>;
  readonly accountId: number;
}

/** The file of an export. Begins when its first page is there, so what fails before has a status of its own. */
class ExportBody implements StreamedBody {
  readonly bytes = null;
  readonly stallLimitMs = STALL_LIMIT_MS;
  readonly #source: ExportSource;
  #opened: { readonly points: OpenExport; readonly encoder: HistoryEncoder } | null = null;

  constructor(source: ExportSource) {
    this.#source = source;
  }

  async open(): Promise<void> {
    const points = await this.#source.open();
    if (points === 'too_many') throw new NotBegun(errorAnswer('TOO_MANY_REQUESTS', TOO_MANY_EXPORTS));
    if (points === 'gone') throw new NotBegun(errorAnswer('DEVICE_NOT_FOUND'));
    this.#opened = { points, encoder: this.#source.encoder() };
  }

  async next(take: (piece: Buffer) => void): Promise<boolean> {
    if (this.#opened === null) return false;
    const { points, encoder } = this.#opened;
    const { turns, accountId } = this.#source;
    const page = await points.next().catch(cutWhenGone);
    await turns.run(accountId, page === null ? encoder.finish(take) : encoder.encode(page, take));
    return page !== null;
  }

  close(): void {
    this.#opened?.points.close();
  }
}

function cutWhenGone(error: unknown): never {
  throw error instanceof DeviceGone ? new CutAnswer() : error;
}

/** An export that has begun. */
interface OpenExport {
  /** The next page of points, oldest first; null after the last. Throws DeviceGone. */
  next(): Promise<PointColumns | null>;
  /** To be called once. */
  close(): void;
}

/** The exports that are read from this pod. They hold no connection between two pages, however slow their readers are. */
export class HistoryExports {
  readonly #reads: (accountId: number) => Sql;
  readonly #openOf = new Map<number, number>();
  #open = 0;

  constructor({ reads }: { readonly reads: (accountId: number) => Sql }) {
    this.#reads = reads;
  }

  /** Begins an export; its first page is read. Rejects with Overloaded, and with what Postgres answers. */
  async open(
    reader: HistoryReader,
    deviceId: number,
    window: TimeWindow,
  ): Promise<OpenExport | 'too_many' | 'gone'> {
    const { accountId, worldIds } = reader;
    if ((this.#openOf.get(accountId) ?? 0) >= EXPORTS_PER_ACCOUNT) return 'too_many';
    if (this.#open >= EXPORTS) throw new Overloaded('too many exports are open');
    this.#add(accountId, 1);
    const pages = pointPages(this.#reads(accountId), worldIds, deviceId, window);
    try {
      let first: PointColumns | null | undefined = await nextOf(pages);
      const next = async (): Promise<PointColumns | null> => {
        if (first === undefined) return nextOf(pages);
        const page = first;
        first = undefined;
        return page;
      };
      return { next, close: () => this.#add(accountId, -1) };
    } catch (error) {
      this.#add(accountId, -1);
      if (error instanceof DeviceGone) return 'gone';
      throw error;
    }
  }

  #add(accountId: number, by: 1 | -1): void {
    const open = (this.#openOf.get(accountId) ?? 0) + by;
    if (open === 0) this.#openOf.delete(accountId);
    else this.#openOf.set(accountId, open);
    this.#open += by;
  }
}

async function nextOf(pages: AsyncGenerator<PointColumns, void, undefined>): Promise<PointColumns | null> {
  const { value, done } = await pages.next();
  return done === true ? null : value;
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
