import { parentPort } from 'node:worker_threads';
import { type Damage, DamagedPoints, invariant } from '../../lib/errors.ts';
import { WorkTurns } from '../../lib/workTurns.ts';
import type { PointsRead } from '../points.sql.ts';
import { LocalDays } from '../summary/localDays.ts';
import { DeviceSums, type EndedDevice, type FleetSummaryRequest } from './deviceSums.ts';

/** What the thread is told. A call begins, then its points come, part after part, and it ends. */
export type SumsTask = { readonly call: number } & (
  | {
      readonly kind: 'begin';
      readonly accountId: number;
      readonly request: Omit<FleetSummaryRequest, 'days'>;
      /** The zone of its days. */
      readonly timeZone: string;
    }
  | { readonly kind: 'add'; readonly part: PointsRead }
  | { readonly kind: 'end' }
);

/** What the thread answers to a part. */
export type SumsReply = { readonly call: number } & (
  | { readonly kind: 'added'; readonly ended: readonly EndedDevice[] }
  | { readonly kind: 'damaged'; readonly damage: Damage }
  | { readonly kind: 'failed'; readonly error: string }
);

/** How long the thread adds up before it looks at what it is told. */
const TURN_MS = 5;

interface OpenCall {
  readonly accountId: number;
  readonly sums: DeviceSums;
}

invariant(parentPort !== null, 'this file is the entry of a thread');
const port = parentPort;
/** The accounts share the processor, as they share that of the service. */
const turns = new WorkTurns<number>(TURN_MS);
const calls = new Map<number, OpenCall>();
port.on('message', (task: SumsTask) => {
  if (task.kind === 'end') calls.delete(task.call);
  else if (task.kind === 'begin') begin(task);
  else void add(task.call, task.part).then((reply) => port.postMessage(reply));
});

function begin({ call, accountId, request, timeZone }: Extract<SumsTask, { kind: 'begin' }>): void {
  const days = LocalDays.of(timeZone);
  invariant(days !== null, 'the zone was found before');
  calls.set(call, { accountId, sums: new DeviceSums({ ...request, days }) });
}

async function add(call: number, part: PointsRead): Promise<SumsReply> {
  try {
    const open = calls.get(call);
    invariant(open !== undefined, 'a part belongs to a call that has begun');
    return { call, kind: 'added', ended: await turns.run(open.accountId, open.sums.add(part)) };
  } catch (error) {
    if (error instanceof DamagedPoints) return { call, kind: 'damaged', damage: error.damage };
    return {
      call,
      kind: 'failed',
      error: error instanceof Error ? (error.stack ?? error.message) : 'unknown',
    };
  }
}
