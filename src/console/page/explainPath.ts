import type { FleetEvent } from './types.ts';

const BEFORE_MS = 10 * 60_000;
const AFTER_MS = 60_000;

/** Where to ask why an event of an area happened: from before the device came in. Null for other events. */
export function explainPath({ data, device_imei, occurred_at }: FleetEvent): string | null {
  if (data.areaId === undefined) return null;
  const atMs = Date.parse(occurred_at);
  const fromMs = Math.min(atMs, Date.parse(data.enteredAt ?? occurred_at)) - BEFORE_MS;
  return explainPathOf(data.areaId, device_imei, fromMs, atMs + AFTER_MS);
}

/** Where to ask why an area did, or did not, report a device in a time. */
export function explainPathOf(areaId: number, device: string, fromMs: number, toMs: number): string {
  const query = new URLSearchParams({
    device,
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
  });
  return `/api/v1/areas/${areaId}/explain?${query}`;
}
