/** Milliseconds in each unit of time. A day is 24 hours: all times of the service are in UTC. */
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
