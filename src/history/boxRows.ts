import type { Sql } from '../postgres/sql.ts';
import { boxDevices, endBoxing, takeBoxing } from './rowBoxes.sql.ts';

/** Locked together for some milliseconds. */
const DEVICES_AT_A_TIME = 100;
/** After each piece of work, so many times as long nothing is done. */
const REST = 1;

/**
 * Makes boxes of the points that are rows, every few minutes, for whoever asks which devices were at a place. A pass that is
 * cut off begins again: boxes only grow.
 */
export async function boxRows(
  sql: Sql,
  rest: (ms: number) => Promise<unknown>,
  isStopping: () => boolean,
): Promise<void> {
  const window = await takeBoxing(sql);
  if (window === null) return;
  let afterDeviceId: number | null = 0;
  while (!isStopping()) {
    const startMs = performance.now();
    afterDeviceId = await boxDevices(sql, afterDeviceId, DEVICES_AT_A_TIME, window);
    if (afterDeviceId === null) return endBoxing(sql, window);
    await rest(REST * (performance.now() - startMs));
  }
}
