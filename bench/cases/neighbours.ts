import type { BenchCase } from '../benchCase.ts';
import type { Attack } from '../neighbours/attack.ts';
import { attackBenchFor } from '../neighbours/attackBench.ts';
import { ATTACKS } from '../neighbours/attacks.ts';
import type { AttackResult } from '../neighbours/measureAttacks.ts';
import { summarize } from '../neighbours/summary.ts';

export const neighbours: BenchCase = {
  about: 'the worst effect of one customer on another, within the limits of its key',
  run: async (context) => {
    const { smoke, seconds, say } = context;
    await using attackBench = await attackBenchFor(context, seconds * 333);
    const results: AttackResult[] = [];
    if (smoke) results.push(...(await attackBench.together(ATTACKS)));
    else
      for (const attack of chosen()) {
        const result = await attackBench.apart([attack]);
        say(summarize([result]).notes.join('; '));
        results.push(result);
      }
    const size = `${results.length} attacks, each while a customer polls every 25 ms and sends 200 points a second`;
    return { kind: 'measured', size, ...summarize(results) };
  },
};

/** FLEET_BENCH_ATTACKS selects attacks by words of their names, separated by commas. */
function chosen(): readonly Attack[] {
  const words = (process.env['FLEET_BENCH_ATTACKS'] ?? '').split(',').filter(Boolean);
  return ATTACKS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
}
