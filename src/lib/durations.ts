/** Milliseconds in each unit of time. A day is 24 hours: all times of the service are in UTC. */
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/**
 * A length of time as people write it, by its two largest units: "4 min 30 s", "36 h", "3 days 2 h". Under a minute it is
 * exact to the millisecond.
 */
export function formatDuration(ms: number): string {
  if (ms < MINUTE_MS) return `${Number((ms / 1_000).toFixed(3))} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < HOUR_MS / 1_000) return inTwoUnits(seconds, 60, 'min', 's');
  const minutes = Math.round(ms / MINUTE_MS);
  if (minutes < (2 * DAY_MS) / MINUTE_MS) return inTwoUnits(minutes, 60, 'h', 'min');
  return inTwoUnits(Math.round(ms / HOUR_MS), 24, 'days', 'h');
}

function inTwoUnits(amount: number, perUnit: number, unit: string, smallUnit: string): string {
  const rest = amount % perUnit;
  const whole = `${(amount - rest) / perUnit} ${unit}`;
  return rest === 0 ? whole : `${whole} ${rest} ${smallUnit}`;
}
