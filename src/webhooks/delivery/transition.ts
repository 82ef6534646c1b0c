export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'exhausted', 'requeued'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/**
 * How an attempt ended. `unsafe`: no packet was sent. `interrupted`: it was counted, and then its process died or stalled.
 * Nobody knows whether it was sent.
 */
export type AttemptOutcome = 'delivered' | 'failed' | 'unsafe' | 'interrupted';

/** What becomes of a delivery after an attempt. */
export interface Transition {
  readonly status: DeliveryStatus;
  /** From now to the next automatic attempt; null: there is none. */
  readonly nextAttemptDelayMs: number | null;
}

/** What an endpoint wants when it does not answer 2xx. */
export const RETRY_POLICIES = ['none', 'fixed', 'exponential'] as const;

export type RetryPolicy = (typeof RETRY_POLICIES)[number];

/** The part of an endpoint that decides about retries. */
export interface RetryRule {
  readonly policy: RetryPolicy;
  /** All attempts of a budget, the first included; 0 acts like 1. */
  readonly maxRetries: number;
}

/**
 * When the last attempt of a budget was interrupted, another one follows at once: the receiver may never have got any.
 * After this many such attempts the delivery is given up, in case it is the delivery that kills the process.
 */
export const UNSURE_ATTEMPTS_MAX = 10;

const FIXED_MINUTES = 5;
const FIRST_MINUTES = 2;

/**
 * The state table of deliveries in the API document, for the three states in which a delivery is attempted: pending,
 * failed and requeued. Where the table has a gap, a retry ends as a first attempt does.
 *
 * @param attemptsUsed attempts since the delivery was made or last replayed, this one included
 */
export function transition(
  outcome: AttemptOutcome,
  attemptsUsed: number,
  rule: RetryRule,
  minuteMs: number,
): Transition {
  switch (outcome) {
    case 'delivered':
      return { status: 'delivered', nextAttemptDelayMs: null };
    case 'unsafe':
      return { status: 'failed', nextAttemptDelayMs: null };
    case 'failed':
    case 'interrupted': {
      const budget = rule.policy === 'none' ? 1 : Math.max(1, rule.maxRetries);
      if (attemptsUsed < budget)
        return { status: 'failed', nextAttemptDelayMs: retryMinutes(rule.policy, attemptsUsed) * minuteMs };
      const isUnsure = outcome === 'interrupted' && attemptsUsed < budget + UNSURE_ATTEMPTS_MAX;
      return isUnsure
        ? { status: 'failed', nextAttemptDelayMs: 0 }
        : { status: 'exhausted', nextAttemptDelayMs: null };
    }
  }
}

/**
 * Without jitter: five exponential attempts are exactly 2, 4, 8 and 16 minutes apart. The doubling continues, up to 2^9
 * minutes before the tenth.
 */
function retryMinutes(policy: RetryPolicy, attemptsUsed: number): number {
  return policy === 'fixed' ? FIXED_MINUTES : FIRST_MINUTES * 2 ** (attemptsUsed - 1);
}

/** How an answered attempt ended: only 2xx is delivered. A redirect is not. */
export function outcomeOfStatus(statusCode: number): 'delivered' | 'failed' {
  return statusCode >= 200 && statusCode <= 299 ? 'delivered' : 'failed';
}
