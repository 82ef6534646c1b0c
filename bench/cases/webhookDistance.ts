import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { migrate } from '../../src/postgres/migrate.ts';
import { adminOf } from '../../test/support/postgres/admin.ts';
import type { BenchCase, CaseContext } from '../benchCase.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { listen } from '../setup/listen.ts';
import { callWebhooks, openPod, type PodWorker } from '../setup/pods.ts';
import { openReceiver, trustReceivers } from '../setup/receivers.ts';

/** Round trips to the receiver: in the same building, in the same country, on another continent. */
const ROUND_TRIPS_MS = [1, 50, 200] as const;
const MEASURED_MS = 50;
/** Deliveries must be made faster than they are sent. */
const CALLERS = 8;
const SMOKE_DELIVERIES = 3;
const SILENCE_LIMIT_MS = 20_000;
const OWNER = 'distance@example.com';

export const webhookDistance: BenchCase = {
  about: 'deliveries a second to one endpoint, by its distance',
  run: async (context) => {
    await using trusted = await trustReceivers();
    const receivedMs: number[] = [];
    const receiver = await openReceiver(trusted.certificate, (request, response) => {
      request.resume().on('end', () => {
        receivedMs.push(performance.now());
        response.writeHead(204).end();
      });
    });
    await using pod = openPod();
    const perSecond = await measure(context, pod, Number(new URL(receiver).port), receivedMs);
    return {
      kind: 'measured',
      size: 'one endpoint, one pod',
      rows: perSecond.map(([roundTripMs, rate]) => ({
        what: `a receiver ${roundTripMs} ms away`,
        unit: 'deliveries',
        perSecond: rate,
      })),
      metrics: { per_second_at_50_ms: new Map(perSecond).get(MEASURED_MS) ?? 0 },
      notes: ['A proxy delays every byte by half a round trip. Each delivery is answered at once.'],
    };
  },
};

/** Deliveries a second by round trip. The first delivery does not count: it opens the connection. */
async function measure(
  { databaseUrl, smoke, seconds }: CaseContext,
  pod: PodWorker,
  receiverPort: number,
  receivedMs: number[],
): Promise<[roundTripMs: number, perSecond: number][]> {
  await using sql = openBenchSql(databaseUrl);
  await migrate(sql, () => undefined);
  const admin = adminOf(databaseUrl);
  await admin.account(OWNER);
  const { key } = await admin.key(OWNER);
  const { url } = await pod.ask({ kind: 'start', databaseUrl, redisUrl: null });
  const call = (path: string, body = {}) =>
    callWebhooks(`${url}/api/webhooks${path}`, 'POST', { 'X-API-Key': key }, body);
  const rates: [number, number][] = [];
  for (const roundTripMs of ROUND_TRIPS_MS) {
    const proxyPort = await openDelayProxy(receiverPort, roundTripMs);
    const { id } = await call('', { url: `https://127.0.0.1:${proxyPort}/`, events: ['*'] });
    // As many as would arrive in that time if nothing but the distance took any.
    const count = smoke ? SMOKE_DELIVERIES : Math.ceil((seconds * 1_000) / Math.max(roundTripMs, 10));
    receivedMs.length = 0;
    let made = 0;
    const makePings = async (): Promise<void> => {
      while (made++ < count) await call(`/${id}/test`);
    };
    await Promise.all(Array.from({ length: CALLERS }, makePings));
    await allReceived(receivedMs, count);
    const [first = 0, last = 0] = [receivedMs[0], receivedMs.at(-1)];
    rates.push([roundTripMs, ((count - 1) * 1_000) / (last - first)]);
  }
  return rates;
}

async function allReceived(receivedMs: readonly number[], count: number): Promise<void> {
  const startMs = performance.now();
  while (receivedMs.length < count) {
    if (performance.now() - Math.max(startMs, receivedMs.at(-1) ?? 0) > SILENCE_LIMIT_MS)
      throw new Error(`${receivedMs.length} of ${count} deliveries have arrived`);
    await sleep(10);
  }
}

/**
 * Starts a TCP proxy, which delays the bytes of each direction by half a round trip, and the first ones of a connection by
 * a whole one more, because the handshake of TCP does not pass through it. Returns its port.
 */
function openDelayProxy(targetPort: number, roundTripMs: number): Promise<number> {
  const server = createServer({ noDelay: true }, (near) => {
    const openedMs = performance.now();
    const far = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
    forward(near, far, () => openedMs + roundTripMs, roundTripMs / 2);
    forward(far, near, () => 0, roundTripMs / 2);
  });
  return listen(server);
}

function forward(from: Socket, to: Socket, readyMs: () => number, delayMs: number): void {
  let lastMs = 0;
  const later = (action: () => void): void => {
    lastMs = Math.max(lastMs, Math.max(performance.now(), readyMs()) + delayMs);
    setTimeout(action, Math.max(0, lastMs - performance.now()));
  };
  from.on('data', (chunk: Buffer) => later(() => to.writable && to.write(chunk)));
  from.on('end', () => later(() => to.end()));
  from.on('error', () => to.destroy());
}
