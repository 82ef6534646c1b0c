import { HistoryPacker } from '../../../src/history/packHistory.ts';
import type { Damage } from '../../../src/lib/errors.ts';
import type { Sql } from '../../../src/postgres/sql.ts';
import { newTurns } from '../workTurns.ts';

export interface Packed {
  readonly points: number;
  readonly damaged: readonly Damage[];
  /** True when a pass over all devices has ended. */
  readonly isDone: boolean;
}

/** Packs what there is to pack, as housekeeping does, without rests and without waiting for the next pass. */
export async function packPoints(sql: Sql, isStopping = () => false): Promise<Packed> {
  await sql`update packing set pass_due_at = '-infinity', leased_until = '-infinity'`;
  let points = 0;
  const damaged: Damage[] = [];
  const packer = new HistoryPacker({
    sql,
    turns: newTurns(),
    rest: async () => undefined,
    lateWaitMs: 0,
    onUnpackedDays: () => undefined,
    onPacked: (count) => {
      points += count;
    },
    onDamaged: (damage) => void damaged.push(damage),
  });
  const isDone = (await packer.round(isStopping)) === 'done';
  return { points, damaged, isDone };
}
