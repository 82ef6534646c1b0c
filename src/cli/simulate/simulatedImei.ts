/** Type allocation code of made-up devices: eight digits in front of each IMEI, no maker's. */
const TYPE_CODE = '35999999';
const SERIAL_DIGITS = 6;

/** As many as there are serial numbers of one type. */
export const SIMULATED_MAX = 10 ** SERIAL_DIGITS;

/** The IMEI of the made-up device of this index (0 to SIMULATED_MAX - 1), with a true check digit. */
export function simulatedImei(index: number): string {
  const body = TYPE_CODE + String(index).padStart(SERIAL_DIGITS, '0');
  return body + luhnDigit(body);
}

/** The digit that makes the Luhn sum of `body` and itself a multiple of ten (ISO/IEC 7812-1 annex B). */
function luhnDigit(body: string): number {
  let sum = 0;
  for (const [place, digit] of [...body].reverse().entries()) {
    const weighted = Number(digit) * (place % 2 === 0 ? 2 : 1);
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return (10 - (sum % 10)) % 10;
}
