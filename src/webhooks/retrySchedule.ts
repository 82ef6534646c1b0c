/** What an endpoint wants when it does not answer 2xx. */
export const RETRY_POLICIES = ['none', 'fixed', 'exponential'] as const;

export type RetryPolicy = (typeof RETRY_POLICIES)[number];

/** The part of an endpoint that decides about retries. */
export interface RetryRule {
  readonly policy: RetryPolicy;
  /** All attempts of a budget, the first included; 0 acts like 1. */
  readonly maxRetries: number;
}

const FIXED_MINUTES = 5;
const FIRST_MINUTES = 2;

/** All attempts of a budget. */
export function attemptsOf({ policy, maxRetries }: RetryRule): number {
  return policy === 'none' ? 1 : Math.max(1, maxRetries);
}

/**
 * Milliseconds from the end of a failed attempt to the next one, or null when the budget is used up. `attemptsUsed` is
 * at least 1: it includes the failed attempt. A minute is `minuteMs` long. There is no jitter: five exponential
 * attempts are exactly 2, 4, 8 and 16 minutes apart. The doubling goes on, to 2^9 minutes before the tenth.
 */
export function nextAttemptDelayMs(rule: RetryRule, attemptsUsed: number, minuteMs: number): number | null {
  if (attemptsUsed >= attemptsOf(rule)) return null;
  switch (rule.policy) {
    case 'none':
      return null;
    case 'fixed':
      return FIXED_MINUTES * minuteMs;
    case 'exponential':
      return FIRST_MINUTES * 2 ** (attemptsUsed - 1) * minuteMs;
  }
}
