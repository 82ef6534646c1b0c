import { invariant } from '../../lib/errors.ts';
import { ok } from '../../lib/result.ts';
import { inOneGo } from '../../lib/workTurns.ts';
import { type ImportItem, MAX_IMPORT_VALUES, type PlanReply, planBody } from './importPlan.ts';

/**
 * What the process answers to a body: items of the plan in several messages, then the plan without them; or the error
 * by which it ends. The service reads each message at once, and ten thousand areas in one would block its event loop.
 */
export type ProcessReply =
  | { readonly kind: 'items'; readonly items: readonly ImportItem[] }
  | { readonly kind: 'plan'; readonly plan: PlanReply }
  | { readonly kind: 'failed'; readonly error: string };

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
// A terminal sends Ctrl-C to the whole process group; the service finishes what it has begun.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

process.on('uncaughtException', (error) =>
  reply({ kind: 'failed', error: error.stack ?? error.message }, () => process.exit(1)),
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
  replyPlan(inOneGo(planBody(body, MAX_IMPORT_VALUES)));
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
