import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { INGEST_TOKEN, NO_LIMITS, type Pod, type Reply, request } from '../pod.ts';
import { waitFor } from '../waitFor.ts';

/** A delivery as the API shows it. */
export interface WireDelivery {
  readonly id: string;
  readonly webhook_id: number;
  readonly event_id: string;
  readonly event_type: string;
  readonly status: string;
  readonly attempts: number;
  readonly next_attempt_at: string | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly last_duration_ms: number | null;
  readonly created_at: string;
  readonly delivered_at: string | null;
}

/** An endpoint as its creation shows it. */
export interface MadeWebhook {
  readonly id: number;
  readonly secret: string;
}

/** Variables of a pod that may send to the loopback, with minutes of that length. */
export function webhookEnv(minuteMs: number, others: Readonly<Record<string, string>> = {}) {
  return {
    ...NO_LIMITS,
    WEBHOOK_ALLOW_NETS: '127.0.0.0/8',
    WEBHOOK_MINUTE_MS: String(minuteMs),
    ...others,
  };
}

/** The webhook routes as one key sees them. */
export interface WebhookApi {
  /** `path` below /api/webhooks. */
  call(method: string, path: string, body?: unknown): Promise<Reply>;
  make(body: object): Promise<MadeWebhook>;
  change(id: number, body: object): Promise<void>;
  ping(id: number): Promise<WireDelivery>;
  replay(deliveryId: string): Promise<Reply>;
  deliveries(id: number, query?: string): Promise<WireDelivery[]>;
  /** Asks until every delivery of the endpoint (there must be so many) is as wished, and returns them. */
  deliveriesWhen(
    id: number,
    count: number,
    holds: (delivery: WireDelivery) => boolean,
  ): Promise<WireDelivery[]>;
}

export function webhookApi(api: string, key: string): WebhookApi {
  const call = (method: string, path: string, body?: unknown): Promise<Reply> =>
    request(`${api}/api/webhooks${path}`, {
      method,
      headers: { 'X-API-Key': key, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  const expect = async (status: number, reply: Promise<Reply>) => {
    const { body, text, status: got } = await reply;
    assert.equal(got, status, text);
    return body?.data;
  };
  const deliveries = (id: number, query = 'limit=200') =>
    expect(200, call('GET', `/${id}/deliveries?${query}`));
  return {
    call,
    make: (body) => expect(201, call('POST', '', body)),
    change: (id, body) => expect(200, call('PUT', `/${id}`, body)),
    ping: (id) => expect(202, call('POST', `/${id}/test`)),
    replay: (deliveryId) => call('POST', `/deliveries/${deliveryId}/replay`),
    deliveries,
    deliveriesWhen: async (id, count, holds) => {
      let found: WireDelivery[] = [];
      await waitFor(async () => {
        found = await deliveries(id);
        return found.length === count && found.every(holds);
      });
      return found;
    },
  };
}

/** A body that creates an endpoint for everything. */
export const endpointBody = (url: string, others: object = {}) => ({ url, events: ['*'], ...others });

/** Points of a device of which every one produces one event: a new RFID each. */
export class EventSource {
  readonly imei: string;
  #recordedAtMs: number;

  constructor(imei: string, startMs: number) {
    this.imei = imei;
    this.#recordedAtMs = startMs;
  }

  point(): {
    imei: string;
    recorded_at: number;
    latitude: number;
    longitude: number;
    speed_kmh: number;
    rfid: string;
  } {
    this.#recordedAtMs += 1_000;
    const recorded_at = this.#recordedAtMs;
    return {
      imei: this.imei,
      recorded_at,
      latitude: 41.9,
      longitude: 12.5,
      speed_kmh: 50,
      rfid: randomUUID(),
    };
  }

  /** Sends points with so many events in one batch, and returns the points. */
  async emit(pod: Pick<Pod, 'points'>, count = 1) {
    const points = Array.from({ length: count }, () => this.point());
    await pod.points(points);
    return points;
  }
}

/** The status of the answer to these points. */
export async function postPoints(ingest: string, points: readonly object[]): Promise<number> {
  const { status } = await request(`${ingest}/positions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN },
    body: JSON.stringify(points),
  });
  return status;
}

/** Sends points to an ingest listener until it has stored them, as a tracker does whose answers may be lost. */
export async function sendForSure(ingest: () => string, points: readonly object[]): Promise<void> {
  // Nobody listens, or hung up: sent again.
  await waitFor(() =>
    postPoints(ingest(), points).then(
      (status) => status === 200,
      () => false,
    ),
  );
}
