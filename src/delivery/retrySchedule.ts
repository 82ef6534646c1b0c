/** What an endpoint asks for when it does not answer 2xx. */
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

/**
 * Milliseconds from the end of a failed attempt to the next one, or null when the budget is used up.
 * `attemptsSpent` counts the attempts of the present budget with the failed one, so it is at least 1. A minute is
 * `minuteMs` long. Without jitter: five exponential attempts lie exactly 2, 4, 8 and 16 minutes apart, and the
 * doubling goes on beyond (2^9 minutes before the tenth).
 */
export function nextAttemptDelayMs(rule: RetryRule, attemptsSpent: number, minuteMs: number): number | null {
  if (attemptsSpent >= Math.max(1, rule.maxRetries)) return null;
  switch (rule.policy) {
    case 'none':
      return null;
    case 'fixed':
      return FIXED_MINUTES * minuteMs;
    case 'exponential':
      return FIRST_MINUTES * 2 ** (attemptsSpent - 1) * minuteMs;
  }
}
