import type { FleetEvent } from './types.ts';

const BEFORE_MS = 10 * 60_000;
const AFTER_MS = 60_000;

/** Where to ask why an event of an area happened: from before the device came in. Null for other events. */
export function explainPath({ data, device_imei, occurred_at }: FleetEvent): string | null {
  if (data.areaId === undefined) return null;
  const atMs = Date.parse(occurred_at);
  const fromMs = Math.min(atMs, Date.parse(data.enteredAt ?? occurred_at)) - BEFORE_MS;
  const query = new URLSearchParams({
    device: device_imei,
    from: new Date(fromMs).toISOString(),
    to: new Date(atMs + AFTER_MS).toISOString(),
  });
  return `/api/v1/areas/${data.areaId}/explain?${query}`;
}
