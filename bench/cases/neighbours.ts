import type { BenchCase, CaseContext } from '../benchCase.ts';
import type { Attack } from '../neighbours/attack.ts';
import { AttackBench } from '../neighbours/attackBench.ts';
import { ATTACKS } from '../neighbours/attacks.ts';
import type { AttackResult, Times } from '../neighbours/measureAttacks.ts';
import { summarize } from '../neighbours/summary.ts';

const SMOKE_TIMES: Times = { calmMs: 60, duringMs: 60, limitMs: 1_000 };
/** Long enough for every attack that ends by itself. */
const LIMIT_MS = 60_000;

export const neighbours: BenchCase = {
  about: 'the worst effect of one customer on another, within the limits of its key',
  run: async (context) => {
    const { databaseUrl, smoke, seconds } = context;
    const measured = { calmMs: seconds * 333, duringMs: seconds * 1_000, limitMs: LIMIT_MS };
    const attackBench = await AttackBench.open({
      databaseUrl,
      scale: smoke ? 'smoke' : 'full',
      times: smoke ? SMOKE_TIMES : measured,
      attackers: 1,
    });
    try {
      const results = smoke
        ? await attackBench.together(ATTACKS)
        : await measureApart(attackBench, context.say);
      const size = `${results.length} attacks, each while a customer polls every 25 ms and sends 200 points a second`;
      return { kind: 'measured', size, ...summarize(results) };
    } finally {
      await attackBench.close();
    }
  },
};

async function measureApart(attackBench: AttackBench, say: CaseContext['say']): Promise<AttackResult[]> {
  const results: AttackResult[] = [];
  for (const attack of chosen()) {
    const result = await attackBench.apart([attack]);
    say(summarize([result]).notes.join('; '));
    results.push(result);
  }
  return results;
}

/** FLEET_BENCH_ATTACKS selects attacks by words of their names, separated by commas. */
function chosen(): readonly Attack[] {
  const words = (process.env['FLEET_BENCH_ATTACKS'] ?? '').split(',').filter(Boolean);
  return words.length === 0
    ? ATTACKS
    : ATTACKS.filter(({ name }) => words.some((word) => name.includes(word)));
}
