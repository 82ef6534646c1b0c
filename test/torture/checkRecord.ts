import { checkDeliveries } from './checks/deliveries.ts';
import { checkFixedAreas, checkMovingAreas } from './checks/events.ts';
import { checkFeeds } from './checks/feeds.ts';
import { checkPositions, checkRestPositions, checkStored, NewestTaken } from './checks/points.ts';
import { checkRegisters, Registers } from './checks/registers.ts';
import type { RecordedCall, RunRecord, Violation } from './record.ts';

/** Every promise that a record shows to be broken, from the record alone. */
export function checkRecord(record: RunRecord): Violation[] {
  const { calls, processes, rest, deliveries } = record;
  const registers = new Registers(calls);
  const taken = new NewestTaken(calls, processes);
  return [
    ...checkAnswers(calls),
    ...checkStored(calls, rest),
    ...checkFixedAreas(record),
    ...checkMovingAreas(record, registers),
    ...checkRegisters(record, registers),
    ...checkPositions(calls, taken),
    ...checkRestPositions(rest),
    ...checkFeeds(calls, rest, taken),
    ...checkDeliveries(deliveries, rest),
  ];
}

/**
 * A call is answered with success, with 503, or not at all; a poll also with what registers explain, such as a revoked key.
 * Every point that is sent is fine, unless its device may be missing, which is a register.
 */
function checkAnswers(calls: readonly RecordedCall[]): Violation[] {
  return calls.flatMap((call): Violation[] => {
    const { what, status, code, process, beginMs } = call;
    const isExplained = call.kind === 'read' && call.finds.length > 0;
    const isRejected = call.kind === 'points' && call.rejected.length > 0;
    // A pod cannot see at once that readers have left over a line that fell silent: they count against the limits.
    const isFull = call.kind === 'page' && status === 429;
    const isFine =
      status === null || status === 503 || (status >= 200 && status < 300) || isExplained || isFull;
    if (isFine && !isRejected) return [];
    const answer = isRejected ? 'rejected points' : `${status} ${code ?? ''}`;
    return [
      {
        rule: 'every call is answered as described',
        message: `${what} of process ${process} at ${Math.round(beginMs)} ms: ${answer}`,
      },
    ];
  });
}
