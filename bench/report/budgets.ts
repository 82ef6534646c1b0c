import { readFile } from 'node:fs/promises';

export interface Budget {
  readonly min?: number;
  readonly max?: number;
  /** Reported, never a failure. In the direction of the limit: with `max` less is better, else more is. */
  readonly goal?: number;
}

export type Budgets = Readonly<Record<string, Readonly<Record<string, Budget>>>>;

export type Verdict = ReturnType<typeof evaluateBudgets>[number];

export async function readBudgets(): Promise<Budgets> {
  return JSON.parse(await readFile(new URL('./budgets.json', import.meta.url), 'utf8')) as Budgets;
}

/** Compares the metrics of a case with its budgets. A missing metric has the value null and breaks its budget. */
export function evaluateBudgets(
  budgets: Readonly<Record<string, Budget>>,
  metrics: Readonly<Record<string, number>>,
) {
  return Object.entries(budgets).map(([metric, budget]) => {
    const value = metrics[metric] ?? null;
    const { min = -Infinity, max = Infinity, goal } = budget;
    const isKept = value !== null && value >= min && value <= max;
    const lessIsBetter = budget.max !== undefined;
    const isGoalReached =
      value !== null && (goal === undefined || (lessIsBetter ? value <= goal : value >= goal));
    return { metric, value, budget, isKept, isGoalReached };
  });
}
