import type { ImportItem } from '../areas/importPlan.ts';
import { invariant } from '../base/invariant.ts';
import { ok } from '../base/result.ts';
import { MAX_IMPORT_VALUES, type PlanReply, planBody } from './planBody.ts';

/**
 * What the process says of a body: some of the plan's items, then some more, at last the plan without them. Each message
 * is read by the service in one go, and ten thousand areas in one would hold up everybody. Or the defect by which it ends.
 */
export type ProcessReply =
  | { readonly kind: 'items'; readonly items: readonly ImportItem[] }
  | { readonly kind: 'plan'; readonly plan: PlanReply }
  | { readonly kind: 'fault'; readonly fault: string };

/** A few milliseconds of reading for the service, also when each has 2 000 vertices. */
const MESSAGE_ITEMS = 100;

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
  reply({ kind: 'fault', fault: error.stack ?? error.message }, () => process.exit(1)),
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
  replyPlan(planOf(body));
}

function replyPlan(plan: PlanReply): void {
  if (!plan.ok) {
    reply({ kind: 'plan', plan });
    return;
  }
  const { items } = plan.value;
  for (let at = 0; at < items.length; at += MESSAGE_ITEMS) {
    reply({ kind: 'items', items: items.slice(at, at + MESSAGE_ITEMS) });
  }
  reply({ kind: 'plan', plan: ok({ ...plan.value, items: [] }) });
}

function planOf(bytes: Uint8Array): PlanReply {
  const steps = planBody(bytes, MAX_IMPORT_VALUES);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
