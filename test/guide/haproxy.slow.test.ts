import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { invariant } from '../../src/lib/errors.ts';
import { spawnWatched } from '../../src/postgres/embedded/watchdog.ts';
import { bareRequest, INGEST_TOKEN, NO_LIMITS, type Pod, podAt, startPod } from '../support/pod.ts';
import { accepts, findFreePort } from '../support/ports.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';
import { deployFile } from './guide.ts';
import { findProgram } from './programs.ts';

const OWNER = 'owner@example.com';
const VAN = '350000000000001';
const point = (n: number) => ({ imei: VAN, recorded_at: Date.now() - n, latitude: 41.9, longitude: 12.5 });
const portOf = (url: string): number => Number(new URL(url).port);

/** Starts haproxy with deploy/haproxy/haproxy.cfg in front of two pods, and returns how both of its ports are reached. */
async function startHaproxy(t: TestContext, pods: readonly [Pod, Pod]) {
  const program = findProgram('haproxy');
  invariant(program !== null, 'there is a haproxy');
  const folder = await mkdtemp(join(tmpdir(), 'fleet-haproxy-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const [api, ingest] = [await findFreePort(), await findFreePort()];
  const text = deployFile('haproxy/haproxy.cfg', {
    ' resolvers docker init-addr libc,none': '',
    'bind :8080': `bind 127.0.0.1:${api}`,
    'bind :8081': `bind 127.0.0.1:${ingest}`,
    'pod-a:3000': `127.0.0.1:${portOf(pods[0].api)}`,
    'pod-b:3000': `127.0.0.1:${portOf(pods[1].api)}`,
    'pod-a:3001': `127.0.0.1:${portOf(pods[0].ingest)}`,
    'pod-b:3001': `127.0.0.1:${portOf(pods[1].ingest)}`,
  }).replace(/^resolvers docker\n(?: {4}.*\n)+/m, '');
  await writeFile(join(folder, 'haproxy.cfg'), text);
  const log = await open(join(folder, 'haproxy.log'), 'w');
  const server = await spawnWatched(program, ['-db', '-f', 'haproxy.cfg'], {
    cwd: folder,
    logFd: log.fd,
    account: null,
  });
  await log.close();
  t.after(() => server.stop());
  let hasEnded = false;
  void server.ended.then(() => {
    hasEnded = true;
  });
  const said = () => readFile(join(folder, 'haproxy.log'), 'utf8');
  await waitFor(async () => {
    if (hasEnded) throw new Error(await said());
    return accepts(api);
  });
  return { ...podAt({ api: `http://127.0.0.1:${api}`, ingest: `http://127.0.0.1:${ingest}` }), said };
}

test('haproxy passes calls and positions to pods, none to one that has stopped, and shows nobody the metrics', {
  skip: findProgram('haproxy') === null && 'there is no haproxy on this machine',
}, async (t) => {
  const { url } = await createDatabase(t);
  const admin = adminOf(url);
  await admin.account(OWNER);
  await admin.device(OWNER, VAN);
  const { key } = await admin.key(OWNER);
  const env = { ...NO_LIMITS, TRUST_PROXY: '127.0.0.1' };
  const pods = [await startPod(url, { t, env }), await startPod(url, { t, env })] as const;
  const site = await startHaproxy(t, pods);
  const nearest = async () => (await site.get('/api/v3/devices/nearest?lat=41.9&lng=12.5', key)).status;
  // Before its first checks haproxy knows of no pod.
  await waitFor(async () => (await nearest()) === 200);
  assert.equal((await site.points([point(0)])).accepted, 1);
  assert.equal((await bareRequest(`${site.ingest}/metrics`)).status, 404);
  assert.equal((await bareRequest(`${site.ingest}/positions/../metrics`)).status, 404);
  assert.equal((await bareRequest(`${site.api}/readyz`)).status, 200);
  const query = new URLSearchParams({ id: VAN, lat: '41.9', lon: '12.5', token: INGEST_TOKEN });
  assert.equal((await bareRequest(`${site.ingest}/osmand?${query}`)).status, 200);
  await pods[0].stop();
  for (let n = 1; n <= 10; n++) {
    assert.equal(await nearest(), 200);
    assert.equal((await site.points([point(n)])).accepted, 1);
  }
  const said = await site.said();
  assert.match(said, /GET \/api\/v3\/devices\/nearest/);
  assert.ok(!said.includes(INGEST_TOKEN), 'the token of phones is not logged');
});
