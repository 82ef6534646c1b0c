import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { listen } from '../../src/postgres/connections.ts';
import { PostgresHosts } from '../../src/postgres/hosts.ts';
import { startLoad } from '../support/ingest/load.ts';
import { type Line, openLine } from '../support/line.ts';
import { INGEST_TOKEN, NO_LIMITS, request, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
const POINTS_LATER = 20;

test('when the host of the primary falls silent, a pod goes on with another, without a poll refused or a point lost', async (t) => {
  const { url } = await createDatabase(t);
  const [first, second] = await openHosts(t, url);
  const both = hostsUrl(url, first, second);
  const admin = adminOf(both);
  await admin.account(OWNER);
  const { key } = await admin.key(OWNER);
  await admin.device(OWNER, IMEI);
  const pod = await startPod(both, { t, env: NO_LIMITS });
  const stored: number[] = [];
  let nextMs = Date.now() - 1_000_000;
  const send = async (): Promise<{ status: number }> => {
    const at = nextMs++;
    const body = JSON.stringify([{ imei: IMEI, recorded_at: at, latitude: 1, longitude: 2 }]);
    const headers = { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN };
    const reply = await request(`${pod.ingest}/positions`, { method: 'POST', headers, body });
    if (reply.status === 200) stored.push(at);
    return reply;
  };
  await send();
  const load = startLoad(t, {
    points: send,
    location: () => pod.get(`/api/v3/devices/${IMEI}/location`, key),
  });
  await waitFor(() => stored.length > POINTS_LATER);
  assert.equal(second.sessions, 0, 'the host that served last is tried first');

  const silentAtMs = performance.now();
  first.fallSilent();
  const before = stored.length;
  await waitFor(() => stored.length > before + 1);
  t.diagnostic(`a point is stored ${Math.round(performance.now() - silentAtMs)} ms after the silence`);
  await waitFor(() => stored.length > before + POINTS_LATER);
  assert.equal(first.open, 0, 'nothing waits for the silent one any more');
  await load.stop();

  const statuses = new Set(Object.keys(load.tally));
  for (const refused of ['points 503', 'points 200', 'location 200']) statuses.delete(refused);
  assert.deepEqual([...statuses], [], 'polls are answered all the time');
  const { body } = await pod.get(`/api/v3/devices/${IMEI}/history?limit=1000`, key);
  const times = new Set(body.data.map(({ recorded_at }: { recorded_at: string }) => Date.parse(recorded_at)));
  assert.deepEqual(
    stored.filter((at) => !times.has(at)),
    [],
  );
});

test('who only listens notices it too', async (t) => {
  const { url } = await createDatabase(t);
  const [first, second] = await openHosts(t, url);
  let rings = 0;
  const moves: string[] = [];
  const hosts = new PostgresHosts(hostsUrl(url, first, second), (host) => moves.push(host));
  const stop = listen(hosts, 'channel', () => {
    rings++;
  });
  t.after(stop);
  await waitFor(() => rings === 1);
  first.fallSilent();
  await waitFor(() => rings === 2);
  assert.deepEqual([first.sessions, second.sessions], [1, 1], 'the silent one is not asked again');
  assert.deepEqual(moves, [`127.0.0.1:${second.port}`], 'what is logged has no password');
});

function hostsUrl(url: string, ...hosts: readonly Line[]): string {
  return url.replace(new URL(url).host, hosts.map(({ port }) => `127.0.0.1:${port}`).join());
}

/** Two ports that lead to Postgres. */
async function openHosts(t: TestContext, url: string): Promise<[Line, Line]> {
  const port = Number(new URL(url).port);
  return [await openLine(t, port), await openLine(t, port)];
}
