/** "1 point", "12 points". */
export function counted(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : nouns}`;
}

/** A length of time as the API writes it in sentences (formatDuration): "42 s", "4 min 30 s", "36 h", "3 days 2 h". */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Number(seconds.toFixed(3))} s`;
  const whole = Math.round(seconds);
  if (whole < 3_600) return inTwoUnits(whole, 60, 'min', 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 2_880) return inTwoUnits(minutes, 60, 'h', 'min');
  return inTwoUnits(Math.round(seconds / 3_600), 24, 'days', 'h');
}

function inTwoUnits(amount: number, perUnit: number, unit: string, smallUnit: string): string {
  const rest = amount % perUnit;
  const whole = `${(amount - rest) / perUnit} ${unit}`;
  return rest === 0 ? whole : `${whole} ${rest} ${smallUnit}`;
}
