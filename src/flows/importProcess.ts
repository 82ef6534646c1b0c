import { invariant } from '../base/invariant.ts';
import { MAX_IMPORT_VALUES, type PlanReply, planBody } from './planBody.ts';

/** What the process says: the plan of a body, or by which defect of ours it ends. */
export type ProcessReply =
  | { readonly plan: PlanReply; readonly fault?: undefined }
  | { readonly plan?: undefined; readonly fault: string };

invariant(process.send !== undefined, 'this file is the entry of a process that the import planner starts');

// One body after the other: its length comes as a message, its bytes come over the standard input.
let pieces: Buffer[] = [];
let bytesHere = 0;
let bytesWanted: number | null = null;
process.on('message', (length: number) => {
  bytesWanted = length;
  planWhenComplete();
});
process.stdin.on('data', (piece: Buffer) => {
  pieces.push(piece);
  bytesHere += piece.length;
  planWhenComplete();
});
// Without the service there is nobody to plan for.
process.on('disconnect', () => process.exit());
// A terminal tells the whole group of Ctrl-C; the service finishes what it has begun.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

process.on('uncaughtException', (error) =>
  reply({ fault: error.stack ?? error.message }, () => process.exit(1)),
);

function reply(said: ProcessReply, sent: () => void = () => undefined): void {
  process.send?.(said, undefined, undefined, sent);
}

function planWhenComplete(): void {
  if (bytesWanted === null || bytesHere < bytesWanted) return;
  const body = Buffer.concat(pieces);
  pieces = [];
  bytesHere = 0;
  bytesWanted = null;
  reply({ plan: planOf(body) });
}

function planOf(bytes: Uint8Array): PlanReply {
  const steps = planBody(bytes, MAX_IMPORT_VALUES);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
