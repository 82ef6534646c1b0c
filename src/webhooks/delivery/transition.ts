export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'exhausted', 'requeued'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/**
 * How an attempt ended. `unsafe`: no packet was sent. `interrupted`: it was counted, and then its process died or stalled.
 * Nobody knows whether it was sent.
 */
export type AttemptOutcome = 'delivered' | 'failed' | 'unsafe' | 'interrupted';

/** What happens to a delivery. */
export type Trigger =
  | {
      readonly kind: 'attempt';
      readonly outcome: AttemptOutcome;
      /** Attempts of the current budget, this one included: it was counted before it was sent. */
      readonly attemptsUsed: number;
    }
  | { readonly kind: 'replay'; readonly inFlight: boolean };

/** What becomes of a delivery. */
export interface Transition {
  readonly status: DeliveryStatus;
  /** From now to the next automatic attempt; null: there is none. */
  readonly nextAttemptDelayMs: number | null;
  /** True when a new budget of attempts begins. Attempt numbers are not reset. */
  readonly freshBudget: boolean;
}

/**
 * When the last attempt of a budget was interrupted, another one follows at once: the receiver may never have got any.
 * After this many such attempts the delivery is given up, in case it is the delivery that kills the process.
 */
export const UNSURE_ATTEMPTS_MAX = 10;

/**
 * The state table of deliveries in the API document. Where it has a gap, a retry of a failed or requeued delivery ends
 * as a first attempt does. Null when the table has no row: this may not happen in this state.
 */
export function transition(
  status: DeliveryStatus,
  trigger: Trigger,
  rule: RetryRule,
  minuteMs: number,
): Transition | null {
  switch (status) {
    case 'pending':
    case 'requeued':
      return trigger.kind === 'replay' ? null : afterAttempt(trigger, rule, minuteMs);
    case 'failed':
      return trigger.kind === 'replay' ? afterReplay(trigger) : afterAttempt(trigger, rule, minuteMs);
    case 'exhausted':
      return trigger.kind === 'replay' ? afterReplay(trigger) : null;
    case 'delivered':
      return null;
  }
}

/** How an answered attempt ended: only 2xx is delivered. A redirect is not. */
export function outcomeOfStatus(statusCode: number): 'delivered' | 'failed' {
  return statusCode >= 200 && statusCode <= 299 ? 'delivered' : 'failed';
}

function afterAttempt(
  { outcome, attemptsUsed }: Extract<Trigger, { kind: 'attempt' }>,
  rule: RetryRule,
  minuteMs: number,
): Transition {
  switch (outcome) {
    case 'delivered':
      return { status: 'delivered', nextAttemptDelayMs: null, freshBudget: false };
    case 'unsafe':
      return { status: 'failed', nextAttemptDelayMs: null, freshBudget: false };
    case 'failed':
    case 'interrupted': {
      const isUnsure = outcome === 'interrupted' && attemptsUsed < attemptsOf(rule) + UNSURE_ATTEMPTS_MAX;
      const delayMs = nextAttemptDelayMs(rule, attemptsUsed, minuteMs) ?? (isUnsure ? 0 : null);
      const status = delayMs === null ? 'exhausted' : 'failed';
      return { status, nextAttemptDelayMs: delayMs, freshBudget: false };
    }
  }
}

function afterReplay({ inFlight }: Extract<Trigger, { kind: 'replay' }>): Transition | null {
  return inFlight ? null : { status: 'requeued', nextAttemptDelayMs: 0, freshBudget: true };
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

const FIXED_MINUTES = 5;
const FIRST_MINUTES = 2;

/** All attempts of a budget. */
function attemptsOf({ policy, maxRetries }: RetryRule): number {
  return policy === 'none' ? 1 : Math.max(1, maxRetries);
}

/**
 * Milliseconds from the end of a failed attempt to the next one, or null when the budget is used up. `attemptsUsed` is
 * at least 1: it includes the failed attempt. A minute is `minuteMs` long. Without jitter: five exponential
 * attempts are exactly 2, 4, 8 and 16 minutes apart. The doubling continues, up to 2^9 minutes before the tenth.
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
