import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { type AreaApi, areaApi, CIRCLE } from '../../support/http/areas.ts';
import { rawRequest } from '../../support/http/http.ts';
import { OWNER, ownerPod } from '../../support/ownerPod.ts';
import { type PodAddress, startPod } from '../../support/pod.ts';
import { waitFor } from '../../support/waitFor.ts';

const VICTIM = 'victim@example.com';
const [FIRST, SECOND, VICTIMS] = ['350000000000001', '350000000000002', '350000000000009'];
const INSIDE = { latitude: 41.9, longitude: 12.5 };
const OUTSIDE = { latitude: 10, longitude: 10 };
const START_MS = Date.now() - 3_600_000;

const service = ownerPod({ devices: [{ imei: FIRST }, { imei: SECOND }] }, async ({ admin, sql }) => {
  await sql`insert into plan (name, history_days, max_stays) values ('few', 30, 2)`;
  await admin.run('account:update', '--email', OWNER, '--plan', 'few');
  await admin.account(VICTIM);
  await admin.device(VICTIM, VICTIMS);
});

let seconds = 0;
async function report(imei: string, place: typeof INSIDE, pod: PodAddress = service.pod): Promise<void> {
  const point = { imei, recorded_at: START_MS + ++seconds * 1_000, ...place, speed_kmh: 0 };
  assert.equal((await pod.points([point])).accepted, 1);
}

describe('an account with as many stays as its plan allows', () => {
  let anna: AreaApi;
  let victim: AreaApi;
  const ids: number[] = [];
  let victimsArea: number;
  before(async () => {
    anna = areaApi(service.pod, service.key);
    victim = areaApi(service.pod, (await service.admin.key(VICTIM)).key);
    for (let n = 0; n < 3; n++) ids.push(await anna.make({ ...CIRCLE, dwell_seconds: 0 }));
    victimsArea = await victim.make({ ...CIRCLE, dwell_seconds: 0 });
  });
  const inside = async (api: AreaApi, id: number): Promise<string[]> =>
    (await api.get(`/${id}/devices`)).body.data.map(
      ({ device }: { device: { imei: string } }) => device.imei,
    );
  const allInside = () => Promise.all(ids.map((id) => inside(anna, id)));
  const explain = async (id: number) => {
    const from = new Date(START_MS).toISOString();
    const to = new Date(START_MS + 1_800_000).toISOString();
    return (await anna.get(`/${id}/explain?device=${FIRST}&from=${from}&to=${to}`)).body.data;
  };

  test('has no further one begun, and an explanation says so; the account beside it is not touched', async () => {
    await report(FIRST, INSIDE);
    await report(VICTIMS, INSIDE);
    assert.deepEqual(await allInside(), [[FIRST], [FIRST], []]);
    assert.deepEqual(await inside(victim, victimsArea), [VICTIMS]);
    await report(FIRST, INSIDE);
    await report(FIRST, OUTSIDE);
    const usage = await service.pod.get('/api/v3/usage', service.key);
    assert.deepEqual(usage.body, {
      data: {
        areas: { used: 3, limit: 20_000 },
        vertices: { used: 0, limit: 4_000_000 },
        stays: { used: 0, limit: 2 },
      },
      meta: {},
    });
    const [, entered, refused] = await Promise.all(ids.map(explain));
    assert.deepEqual([entered.verdict, entered.notes], ['left', []]);
    assert.deepEqual(
      refused.notes.map(({ code, at }: { code: string; at: string }) => [code, Date.parse(at)]),
      [['stay_quota', START_MS + 1_000]],
    );
    assert.match(refused.notes[0].message, /^2 points inside began no stay, so no entry was reported: /);
    const { text } = await rawRequest(service.pod.ingest, '/metrics');
    assert.match(text, /^fleet_stays_refused_total\{limit="account"\} 2$/m);
    assert.match(text, /^fleet_memory_stays 1$/m);
  });

  test('is at its quota on a pod that starts now, too, and begins more as soon as its plan allows more', async (t) => {
    const pod = await startPod(service.url, { t });
    await report(FIRST, INSIDE);
    await waitFor(async () => {
      const { text } = await rawRequest(pod.ingest, '/metrics');
      return /^fleet_memory_stays 3$/m.test(text);
    });
    await report(SECOND, INSIDE, pod);
    assert.deepEqual(await allInside(), [[FIRST], [FIRST], []]);
    const { body } = await pod.get('/api/v3/usage', service.key);
    assert.deepEqual(body.data.stays, { used: 2, limit: 2 });
    await service.admin.run('account:update', '--email', OWNER, '--plan', 'enterprise');
    await report(SECOND, INSIDE, pod);
    await waitFor(async () => (await inside(anna, ids[2] as number)).length === 1);
    assert.deepEqual(await allInside(), [[FIRST, SECOND], [FIRST, SECOND], [SECOND]]);
  });
});
