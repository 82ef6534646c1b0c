import { nextAttemptDelayMs, type RetryRule } from './retrySchedule.ts';

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'exhausted', 'requeued'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** How an attempt ended; `unsafe` ones sent no packet, `cut_off` ones were in flight when their process died. */
export type AttemptOutcome = 'delivered' | 'failed' | 'unsafe' | 'cut_off';

/** What happens to a delivery. */
export type Trigger =
  | {
      readonly kind: 'attempt';
      readonly outcome: AttemptOutcome;
      /** Attempts of the present budget, with this one: it was counted before it was sent. */
      readonly attemptsSpent: number;
    }
  | { readonly kind: 'replay'; readonly inFlight: boolean };

/** Where a delivery goes. */
export interface Transition {
  readonly status: DeliveryStatus;
  /** From now to the next automatic attempt; null: there is none. */
  readonly nextAttemptDelayMs: number | null;
  /** The budget starts again: no attempt of it is spent. The number of the attempts goes on. */
  readonly freshBudget: boolean;
}

/**
 * The state table of deliveries in the API document, with its gaps filled: a retry of a failed or requeued delivery
 * ends as a first attempt does. Null where the table has no row: the caller may not do this now.
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

/** How an answered attempt ended: 2xx delivers, all else (redirects too) does not. */
export function outcomeOfStatus(statusCode: number): 'delivered' | 'failed' {
  return statusCode >= 200 && statusCode <= 299 ? 'delivered' : 'failed';
}

function afterAttempt(
  { outcome, attemptsSpent }: Extract<Trigger, { kind: 'attempt' }>,
  rule: RetryRule,
  minuteMs: number,
): Transition {
  switch (outcome) {
    case 'delivered':
      return { status: 'delivered', nextAttemptDelayMs: null, freshBudget: false };
    case 'unsafe':
      return { status: 'failed', nextAttemptDelayMs: null, freshBudget: false };
    case 'failed':
    case 'cut_off': {
      const delayMs = nextAttemptDelayMs(rule, attemptsSpent, minuteMs);
      const status = delayMs === null ? 'exhausted' : 'failed';
      return { status, nextAttemptDelayMs: delayMs, freshBudget: false };
    }
  }
}

function afterReplay({ inFlight }: Extract<Trigger, { kind: 'replay' }>): Transition | null {
  return inFlight ? null : { status: 'requeued', nextAttemptDelayMs: 0, freshBudget: true };
}
