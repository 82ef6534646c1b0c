import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { openSql } from '../../src/postgres/sql.ts';
import { areaApi, CIRCLE } from '../support/http/areas.ts';
import { NO_LIMITS, type Pod, request, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { startReplicatedPostgres } from '../support/postgres/replicatedPostgres.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
const FEEDS = ['devices/changes', 'events/feed'] as const;
const [INSIDE, OUTSIDE] = [41.9, -30];
/** Entries and exits that are lost, and again as many as make the log and the transactions grow beyond them. */
const LOST = 6;
const LATER = 12;

/** A vehicle that drives in and out of an area, with an endpoint that nothing is sent to. */
async function startSite<Postgres extends { url: string }>(t: TestContext, postgres: Postgres) {
  const admin = adminOf(postgres.url);
  await admin.account(OWNER);
  await admin.device(OWNER, IMEI);
  const { key } = await admin.key(OWNER);
  const env = { ...NO_LIMITS, ROLES: 'api,ingest' };
  const pod = await startPod(postgres.url, { t, env });
  await areaApi(pod, key).make({ ...CIRCLE, center: { lat: INSIDE, lng: 12.5 } });
  const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' };
  const body = JSON.stringify({
    url: 'https://hooks.example.com/',
    events: ['geofence_enter', 'geofence_exit'],
  });
  assert.equal((await request(`${pod.api}/api/webhooks`, { method: 'POST', headers, body })).status, 201);
  let atMs = Date.now() - 3_600_000;
  const drive = async (to: Pod, times: number): Promise<void> => {
    for (let n = 0; n < times; n++) {
      atMs += 1_000;
      const latitude = n % 2 === 0 ? INSIDE : OUTSIDE;
      await to.points([{ imei: IMEI, recorded_at: atMs, latitude, longitude: 12.5 }]);
    }
  };
  return { postgres, pod, key, drive, another: () => startPod(postgres.url, { t, env }) };
}

/** Cursors of readers that have read all there is. */
function cursorsOf(pod: Pod, key: string): Promise<string[]> {
  return Promise.all(
    FEEDS.map(async (path) => {
      let cursor = '';
      await waitFor(async () => {
        const { body } = await pod.get(`/api/v3/${path}${cursor === '' ? '' : `?cursor=${cursor}`}`, key);
        const isFinished = cursor !== '' && body.data.length === 0;
        cursor = body.meta.cursor;
        return isFinished;
      });
      return cursor;
    }),
  );
}

async function statusesOf(pod: Pod, key: string, cursors: readonly string[]): Promise<number[]> {
  const all = FEEDS.map((path, n) => pod.get(`/api/v3/${path}?cursor=${cursors[n]}`, key));
  return (await Promise.all(all)).map(({ status }) => status);
}

/** Ids of events and of their webhook events. */
async function idsOf({ url }: { url: string }): Promise<{ events: number[]; hooks: string[] }> {
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  const events = await sql<{ id: number }[]>`select id from fleet_event order by id`;
  const hooks = await sql<{ id: string }[]>`select event_id as id from webhook_delivery order by event_id`;
  await sql.end();
  return { events: events.map(({ id }) => id), hooks: hooks.map(({ id }) => id) };
}

type Ids = Awaited<ReturnType<typeof idsOf>>;

/** No id of what was lost, `before` and not in `common`, is among those that exist after it. */
function proveNewIds(common: Ids, before: Ids, after: Ids): void {
  for (const ids of ['events', 'hooks'] as const) {
    const kept = new Set<string | number>(common[ids]);
    const gone = new Set<string | number>(before[ids].filter((id) => !kept.has(id)));
    assert.equal(gone.size, LOST);
    assert.ok(after[ids].length > before[ids].length);
    assert.deepEqual(
      after[ids].filter((id) => gone.has(id)),
      [],
    );
  }
}

const takesPoints = (pod: Pod) => waitFor(async () => (await request(`${pod.ingest}/readyz`)).status === 200);

describe('the files of Postgres are put back', { concurrency: 2, timeout: 120_000 }, () => {
  for (const [what, isStopped] of [
    ['as a stopped server left them', true],
    ['as they were while it ran', false],
  ] as const) {
    test(what, async (t) => {
      const { postgres, pod, key, drive, another } = await startSite(t, await startOwnPostgres(t));
      await drive(pod, 2);
      const kept = await cursorsOf(pod, key);
      if (isStopped) await postgres.stop();
      await postgres.copyFiles();
      if (isStopped) await postgres.start();
      await takesPoints(pod);
      assert.deepEqual(await statusesOf(pod, key, kept), [200, 200], 'a restart costs nobody a cursor');
      const common = await idsOf(postgres);
      await drive(pod, LOST);
      const lost = await cursorsOf(pod, key);
      const before = await idsOf(postgres);
      assert.equal(before.events.length, common.events.length + LOST);

      await postgres.putFilesBack();
      // Sooner than anything else that this pod does.
      await waitFor(() =>
        drive(pod, 1).then(
          () => true,
          () => false,
        ),
      );
      await drive(pod, LATER);
      const after = await idsOf(postgres);
      proveNewIds(common, before, after);
      const fresh = await another();
      for (const reader of [pod, fresh]) {
        assert.deepEqual(await statusesOf(reader, key, lost), [410, 410]);
        assert.deepEqual(await statusesOf(reader, key, kept), [200, 200]);
        const { body } = await reader.get(`/api/v3/events/feed?cursor=${kept[1]}&limit=1000`, key);
        const told = body.data.map(({ id }: { id: number }) => id);
        const missed = after.events.filter((id) => !common.events.includes(id));
        assert.deepEqual(
          told.sort((a: number, b: number) => a - b),
          missed,
          'every event is told',
        );
      }

      // Again, and this time nobody is there who has seen what is lost.
      if (!isStopped && !IS_TORTURE) return;
      const later = await cursorsOf(pod, key);
      await Promise.all([pod.stop(), fresh.stop()]);
      await postgres.putFilesBack();
      const last = await another();
      await drive(last, 2 * LATER);
      for (const cursors of [lost, later]) assert.deepEqual(await statusesOf(last, key, cursors), [410, 410]);
      assert.deepEqual(await statusesOf(last, key, kept), [200, 200]);
    });
  }
});

test('ids of events that a promoted replica lacks are not given again', async (t) => {
  const postgres = await startReplicatedPostgres(t);
  const { pod, key, drive } = await startSite(t, postgres);
  await drive(pod, 2);
  await postgres.loseReplica();
  const common = await idsOf(postgres);
  await drive(pod, LOST);
  const lost = await cursorsOf(pod, key);
  const before = await idsOf(postgres);
  await postgres.failOver();
  await waitFor(() =>
    drive(pod, 1).then(
      () => true,
      () => false,
    ),
  );
  await drive(pod, LATER);
  proveNewIds(common, before, await idsOf(postgres));
  assert.deepEqual(await statusesOf(pod, key, lost), [410, 410]);
});
