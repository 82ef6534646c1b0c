/** True under `npm run torture`, where what is random goes on for longer. */
export const IS_TORTURE = process.env['FLEET_TORTURE'] === '1';

/** How often something random or repeated is tried: enough to be worth its time, ten times that under torture. */
export function runs(short: number): number {
  return IS_TORTURE ? 10 * short : short;
}
