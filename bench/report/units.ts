// Numbers of measurements as text, with three significant digits.

export function formatNumber(value: number): string {
  return value >= 100 ? formatCount(value) : value.toPrecision(3);
}

/** A whole number in groups of three digits. */
export function formatCount(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ' ');
}

/** Milliseconds with the unit that fits. Empty when there is none. */
export function formatDuration(ms: number | undefined): string {
  if (ms === undefined || Number.isNaN(ms)) return '';
  if (ms < 1) return `${formatNumber(ms * 1_000)} µs`;
  return ms < 1_000 ? `${formatNumber(ms)} ms` : `${formatNumber(ms / 1_000)} s`;
}

export function formatPercent(share: number | undefined): string {
  return share === undefined ? '-' : `${Math.round(share * 100)} %`;
}
