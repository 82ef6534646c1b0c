import { setTimeout as sleep } from 'node:timers/promises';
import { HistoryPacker } from '../../history/packHistory.ts';
import { fail, ok } from '../../lib/result.ts';
import { type CommandContext, type CommandOutcome, defineCommand } from '../command.ts';
import type { Session } from '../session.ts';

export const migrateCommand = defineCommand({
  name: 'migrate',
  summary: 'Brings the schema of the database up to date (every start and every command does so too).',
  options: {},
  run: (context) => context.withSession(async ({ applied }) => ok({ applied })),
});

/** Between two lines of progress. */
const PROGRESS_MS = 2_000;

export const historyPack = defineCommand({
  name: 'history:pack',
  summary: 'Packs the points of all closed days now, without pausing.',
  options: {},
  notes: [
    'The service does the same by itself, a little at a time, and pauses that while this command runs. What is',
    'packed stays packed when the command is interrupted.',
  ],
  run: (context) => context.withSession((session) => pack(context, session)),
});

async function pack({ say, interrupted }: CommandContext, { sql, turns }: Session): Promise<CommandOutcome> {
  let points = 0;
  let saidMs = performance.now();
  let damaged = 0;
  let unpackedDays = 0;
  const packer = new HistoryPacker({
    sql,
    turns,
    // Lets a signal in.
    rest: () => sleep(0),
    lateWaitMs: 0,
    onUnpackedDays: (days) => {
      unpackedDays = days;
    },
    onPacked: (count) => {
      points += count;
      if (performance.now() - saidMs < PROGRESS_MS) return;
      saidMs = performance.now();
      say(`${points} points packed`);
    },
    onDamaged: ({ reason }) => {
      damaged++;
      say(`packed points cannot be read and are left as they are: ${reason}`);
    },
  });
  for (;;) {
    const round = await packer.round(() => interrupted.aborted, true);
    if (interrupted.aborted)
      return fail(`interrupted: ${points} points are packed. Repeat the command to go on`);
    if (round === 'elsewhere')
      return fail(`another command is already packing; this one has packed ${points} points`);
    if (round === 'done') return ok({ points, damaged });
    say(
      `${points} points packed; about ${unpackedDays.toFixed(1)} days of each device were left a minute ago`,
    );
  }
}
