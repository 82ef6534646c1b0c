import { readFile } from 'node:fs/promises';

/** What a figure of a case must keep to, and what it is meant to reach. */
export interface Budget {
  readonly min?: number;
  readonly max?: number;
  /** Told, never a failure. Compared in the direction of the limit; with neither, the more the better. */
  readonly goal?: number;
}

/** By case and figure. */
export type Budgets = Readonly<Record<string, Readonly<Record<string, Budget>>>>;

export interface Verdict {
  readonly figure: string;
  /** null: the case did not give it. */
  readonly value: number | null;
  readonly budget: Budget;
  readonly isKept: boolean;
  readonly isGoalReached: boolean;
}

export async function readBudgets(): Promise<Budgets> {
  return JSON.parse(await readFile(new URL('./budgets.json', import.meta.url), 'utf8')) as Budgets;
}

/** Holds the figures of a case against its budgets. One that is not there breaks its budget: it may not rot. */
export function judge(
  budgets: Readonly<Record<string, Budget>>,
  figures: Readonly<Record<string, number>>,
): Verdict[] {
  return Object.entries(budgets).map(([figure, budget]) => {
    const value = figures[figure] ?? null;
    const { min = -Infinity, max = Infinity, goal } = budget;
    const isKept = value !== null && value >= min && value <= max;
    const lessIsBetter = budget.max !== undefined;
    const isGoalReached =
      value !== null && (goal === undefined || (lessIsBetter ? value <= goal : value >= goal));
    return { figure, value, budget, isKept, isGoalReached };
  });
}
