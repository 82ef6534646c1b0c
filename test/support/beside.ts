import assert from 'node:assert/strict';

/** Heavy calls of one customer beside small ones of another. */
interface Neighbours {
  /** One heavy call. It fails if it is not answered as it should be. */
  readonly attack: () => Promise<unknown>;
  /** At a time. */
  readonly attackers: number;
  /** Some small calls, one after the other. They fail if they are not answered as they should be. */
  readonly victim: () => Promise<unknown>;
  /** How often the victim calls. */
  readonly rounds: number;
}

/**
 * Repeats the heavy calls for as long as the victim calls. Fails if one of them fails, or if more heavy calls were answered
 * than the victim made rounds: then it has waited for them.
 */
export async function callBeside({ attack, attackers, victim, rounds }: Neighbours): Promise<void> {
  let isOver = false;
  let answered = 0;
  // Who fails ends the others too, and all of them have ended before the failure is told.
  const untilOver = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } finally {
      isOver = true;
    }
  };
  const attacks = Array.from({ length: attackers }, () =>
    untilOver(async () => {
      while (!isOver) {
        await attack();
        if (!isOver) answered++;
      }
    }),
  );
  const calm = untilOver(async () => {
    for (let round = 0; round < rounds && !isOver; round++) await victim();
  });
  const ends = await Promise.allSettled([calm, ...attacks]);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  assert.ok(
    answered <= rounds,
    `${answered} heavy calls were answered beside ${rounds} rounds of the victim`,
  );
}
