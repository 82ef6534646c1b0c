import { ENDPOINT_LIMITS } from '../endpoint.ts';

/**
 * Why an endpoint gets no new deliveries. `endpoint_quota`: too many of its deliveries wait. `account_quota`: too many of
 * its account, and more than its share of them. `failing`: no attempt has succeeded for days.
 */
export const PAUSE_REASONS = ['endpoint_quota', 'account_quota', 'failing'] as const;

export type PauseReason = (typeof PAUSE_REASONS)[number];

/** How many deliveries of an account may wait for an attempt. */
export interface WaitingQuota {
  readonly perAccount: number;
  readonly perEndpoint: number;
}

/** What waits for an endpoint. */
export interface Backlog {
  readonly webhookId: number;
  readonly isPaused: boolean;
  /** Deliveries that wait for an attempt. A count that stops somewhere beyond the quota of an endpoint is enough. */
  readonly waiting: number;
  /** Events in the outbox whose deliveries are not made yet. */
  readonly toBeMade: number;
}

export interface Pause {
  readonly webhookId: number;
  readonly reason: PauseReason;
}

/**
 * Which endpoints of an account are to be paused. When the account has too many waiting, these are the endpoints with more
 * than the hundredth part of its quota: an account has at most a hundred endpoints, so the others cannot exceed it together.
 */
export function pausesOf(quota: WaitingQuota, backlogs: readonly Backlog[]): Pause[] {
  const all = backlogs.reduce((sum, { waiting }) => sum + waiting, 0);
  const share = quota.perAccount / ENDPOINT_LIMITS.perOwner;
  return backlogs.flatMap(({ webhookId, isPaused, waiting, toBeMade }): Pause[] => {
    if (isPaused) return [];
    if (Math.max(waiting, toBeMade) > quota.perEndpoint) return [{ webhookId, reason: 'endpoint_quota' }];
    return all > quota.perAccount && waiting > share ? [{ webhookId, reason: 'account_quota' }] : [];
  });
}
