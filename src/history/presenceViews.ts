import { statusOf } from '../devices/deviceJson.ts';
import { formatIso } from '../lib/isoTime.ts';
import type { PresentDevice } from './presence/presenceSearch.ts';

/** A device that was at a place. */
export function presenceView({ device, ...presence }: PresentDevice, nowMs: number) {
  const { imei, name, plate } = device.fields;
  return {
    device: { id: imei, imei, name, plate, status: statusOf(device.position, nowMs) },
    first_at: formatIso(presence.firstMs),
    last_at: formatIso(presence.lastMs),
    points: presence.points,
    seconds: presence.insideMs / 1_000,
    closest_m: presence.closestM,
    closest_at: formatIso(presence.closestMs),
  };
}

/** What was asked for, as it was used, and how many devices were there in all. */
export function presenceMeta(
  { fromMs, toMs, limit }: { readonly fromMs: number; readonly toMs: number; readonly limit: number },
  total: number,
) {
  return { query: { from: formatIso(fromMs), to: formatIso(toMs), limit }, total };
}
