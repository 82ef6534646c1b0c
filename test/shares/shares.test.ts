import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { after, describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { formatIso, HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts';
import { SHARE_ERRORS } from '../../src/shares/share.ts';
import { openAnswer, type StreamMessage } from '../support/feeds/feedReader.ts';
import { callApi, faceOf, logIn, makeOwner, outcomeOf, setPassword } from '../support/http/application.ts';
import { CIRCLE } from '../support/http/areas.ts';
import { describedRoutes } from '../support/http/describedApi.ts';
import { manualClock } from '../support/manualClock.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const [VAN, TRUCK, FOREIGN] = ['350000000000001', '350000000000002', '350000000000009'];
const OTHER = 'other@example.com';
const clock = manualClock(Date.now());
const IN_AN_HOUR = formatIso(clock() + HOUR_MS);
const SHARE = { devices: [VAN], expires_at: IN_AN_HOUR };

let second: Pod;
let area = 0;
const owner = ownerPod(
  {
    clock,
    env: NO_LIMITS,
    devices: [
      { imei: VAN, name: 'Van', plate: 'AB 1' },
      { imei: TRUCK, name: 'Truck' },
    ],
  },
  async ({ pod, admin, key }) => {
    await setPassword(admin, OWNER);
    await makeOwner(admin, OTHER);
    await admin.device(OTHER, FOREIGN);
    await go(VAN, 41.5, 12.1, -60);
    area = (await callApi(pod, 'POST', '/v3/areas', { key, body: CIRCLE })).body.data.id;
    second = await startPod(owner.url, { clock, env: NO_LIMITS });
  },
);
const { pod } = owner;
after(() => second?.stop());

/** Is there, so many seconds after now. */
async function go(imei: string, latitude: number, longitude: number, seconds: number): Promise<void> {
  const recorded_at = clock() + seconds * 1_000;
  await pod.points([{ imei, latitude, longitude, speed_kmh: 43, heading: 90, recorded_at }]);
}

const create = (body: unknown, who: { key?: string; token?: string } = { key: owner.key }) =>
  callApi(pod, 'POST', who.token === undefined ? '/v3/shares' : '/v1/shares', { body, ...who });

async function made(more: object = {}): Promise<{ id: number; token: string }> {
  const { status, body, text } = await create({ ...SHARE, ...more });
  assert.equal(status, 201, text);
  const { id, url } = body.data;
  assert.match(url, new RegExp(`^${pod.api}/s/[A-Za-z0-9_-]{43}$`));
  return { id, token: url.split('/').at(-1) };
}

const show = (token: string, on: Pod = pod) => callApi(on, 'GET', `/share/${token}`);

async function follow(t: TestContext, on: Pod, token: string) {
  const abort = new AbortController();
  t.after(() => abort.abort());
  const answer = await openAnswer(`${on.api}/api/share/${token}/stream`, {}, abort.signal);
  assert.equal(answer.statusCode, 200);
  const messages: Omit<StreamMessage, 'id'>[] = [];
  const read = async (): Promise<void> => {
    let text = '';
    for await (const chunk of answer) {
      const blocks = (text + String(chunk)).split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const [, event = '', data = 'null'] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
        messages.push({ event, data: JSON.parse(data) });
      }
    }
  };
  const ended = read().catch(() => undefined);
  return { messages, ended, text: () => JSON.stringify(messages) };
}

describe('POST /shares', () => {
  test('makes a link whose token is shown once and stored as a fingerprint', async () => {
    const { id, token } = await made({ name: 'Yours', show: ['plate', 'name'] });
    const { body, text } = await callApi(pod, 'GET', '/v3/shares', { key: owner.key });
    const { url: _, ...listed } = body.data.find((share: { id: number }) => share.id === id);
    assert.deepEqual(
      { ...listed, created_at: '' },
      {
        ...{ id, name: 'Yours', devices: [VAN], created_at: '', expires_at: IN_AN_HOUR, ended_at: null },
        ...{ end_reason: null, until_area_id: null, delay_seconds: 0, hide: [], show: ['name', 'plate'] },
      },
    );
    assert.ok(!text.includes(token) && !text.includes('url'));
    const rows = await owner.sql<{ row: string; print: string }[]>`
      select s::text as row, encode(fingerprint, 'hex') as print from share s where id = ${id}`;
    assert.ok(!rows[0]?.row.includes(token));
    assert.equal(rows[0]?.print, createHash('sha256').update(token).digest('hex'));
  });

  /** Of each error a body that has it. */
  const BODIES: Readonly<Record<keyof typeof SHARE_ERRORS, unknown>> = {
    bodyInvalid: [],
    limitReached: SHARE,
    devicesRequired: { ...SHARE, devices: [] },
    devicesInvalid: { ...SHARE, devices: ['12'] },
    devicesTooMany: { ...SHARE, devices: Array(21).fill(VAN) },
    devicesUnknown: { ...SHARE, devices: [VAN, FOREIGN] },
    nameInvalid: { ...SHARE, name: ' ' },
    expiresAtRequired: { devices: [VAN] },
    expiresAtInvalid: { ...SHARE, expires_at: formatIso(clock() + 31 * 24 * HOUR_MS) },
    untilAreaInvalid: { ...SHARE, until_area_id: 999_999 },
    delayInvalid: { ...SHARE, delay_seconds: 3_601 },
    hideInvalid: { ...SHARE, hide: [{ lat: 1, lng: 1, radius_m: 5_001 }] },
    showInvalid: { ...SHARE, show: ['imei'] },
  };
  for (const [name, body] of Object.entries(BODIES)) {
    test(`${name}: is refused with 422 and says so`, async () => {
      if (name === 'limitReached') {
        await owner.sql`
          insert into share (account_id, fingerprint, device_ids, hide, show, delay_seconds, expires_at)
          select a.id, sha256(n::text::bytea), '{1}', '[]', '{}', 0, now() + interval '1 hour'
          from account a, generate_series(1, 1000) n where a.email = ${OWNER}`;
      }
      const reply = await create(body);
      const { field, code, message } = SHARE_ERRORS[name as keyof typeof SHARE_ERRORS];
      assert.equal(reply.status, 422, reply.text);
      assert.deepEqual(reply.body.error.details, [{ field, code, message }]);
      if (name === 'limitReached')
        await owner.sql`delete from share where device_ids = '{1}' and show = '{}'`;
    });
  }

  test('takes the scope manage_shares, or a session that is not a viewer’s, and no key with groups', async () => {
    const { key: reader } = await owner.admin.key(OWNER, { scopes: 'read_devices,manage_webhooks' });
    assert.equal(outcomeOf(await create(SHARE, { key: reader })), '403 INSUFFICIENT_SCOPE');
    const grouped = await owner.admin.run('key:create', '--email', OWNER, '--scopes', 'all', '--groups', 'x');
    assert.equal(outcomeOf(await create(SHARE, { key: String(grouped['key']) })), '403 INSUFFICIENT_SCOPE');
    assert.equal(outcomeOf(await create(SHARE, {})), '403 API_KEY_REQUIRED');
    assert.equal((await create(SHARE, { token: await logIn(pod, OWNER) })).status, 201);
    await makeOwner(owner.admin, 'viewer@example.com', '--role', 'viewer');
    const token = await logIn(pod, 'viewer@example.com');
    assert.equal(outcomeOf(await create(SHARE, { token })), '403 INSUFFICIENT_SCOPE');
    const ended = await callApi(pod, 'DELETE', '/v1/shares/1', { token });
    assert.equal(outcomeOf(ended), '403 INSUFFICIENT_SCOPE');
  });

  test('answers a foreign share as a missing one', async () => {
    const { id } = await made();
    const token = await logIn(pod, OTHER);
    const remove = (named: number) => callApi(pod, 'DELETE', `/v1/shares/${named}`, { token });
    assert.deepEqual(faceOf(await remove(id)), faceOf(await remove(999_999)));
    assert.deepEqual((await callApi(pod, 'GET', '/v1/shares', { token })).body.data, []);
    assert.equal((await show((await made()).token)).status, 200);
  });
});

describe('a link', () => {
  test('shows where the vehicles are on every pod, without a key, and nothing but what the share says', async (t) => {
    const { token } = await made({ devices: [TRUCK, VAN] });
    for (const on of [pod, second]) {
      const { status, body, headers, text } = await show(token, on);
      assert.equal(status, 200);
      const location = {
        latitude: 41.5,
        longitude: 12.1,
        heading: 90,
        recorded_at: formatIso(clock() - MINUTE_MS),
      };
      assert.deepEqual(body.data, {
        ...{ name: null, expires_at: IN_AN_HOUR },
        devices: [
          { id: 1, name: 'Truck', place: 'unknown', location: null },
          { id: 2, name: 'Van', place: 'known', location },
        ],
      });
      for (const secret of [VAN, TRUCK, OWNER, 'AB 1']) assert.ok(!text.includes(secret));
      assert.equal(headers.get('referrer-policy'), 'no-referrer');
      assert.deepEqual([headers.get('x-robots-tag'), headers.get('cache-control')], ['noindex', 'no-store']);
      assert.equal(headers.get('set-cookie'), null);
    }
    const streams = [await follow(t, pod, token), await follow(t, second, token)];
    await go(TRUCK, 41.6, 12.2, -30);
    clock.set(clock() + 1_000);
    for (const { messages } of streams) {
      await waitFor(() => messages.some(({ data }) => data.location?.latitude === 41.6));
      assert.ok(messages.every(({ data }) => data.location?.speed_kmh === undefined));
    }
  });

  test('with hide has no place within it, in body, trail and stream', async (t) => {
    await go(TRUCK, 41.7, 12.3, -20);
    const hide = [{ lat: 41.7, lng: 12.3, radius_m: 200 }];
    const { token } = await made({ devices: [TRUCK], hide, show: ['speed', 'trail'] });
    const { body, text } = await show(token);
    const [{ trail, ...device }] = body.data.devices;
    assert.deepEqual(device, { id: 1, place: 'private', location: null });
    assert.deepEqual(trail, [[[12.2, 41.6]]]);
    const { messages, text: streamed } = await follow(t, pod, token);
    await waitFor(() => messages.length > 0);
    for (const shown of [text, streamed()]) assert.ok(!/41\.7|12\.3|speed/.test(shown), shown);
  });

  test('with a delay shows the place of then, never a newer one', async (t) => {
    const { token } = await made({ devices: [VAN], delay_seconds: 300, show: ['speed', 'trail'] });
    assert.deepEqual((await show(token)).body.data.devices, [
      { id: 1, place: 'unknown', location: null, trail: [] },
    ]);
    const { messages, text } = await follow(t, second, token);
    clock.set(clock() + 5 * MINUTE_MS);
    await go(VAN, 41.8, 12.9, 0);
    await waitFor(async () => (await show(token)).body.data.devices[0].location?.latitude === 41.5);
    await waitFor(() => messages.some(({ data }) => data.location?.latitude === 41.5));
    assert.ok(!/41\.8|12\.9/.test(text() + (await show(token)).text));
  });

  test('with a trail loses a vehicle that was deleted as soon as any other share does', async () => {
    const gone = '350000000000003';
    await owner.admin.device(OWNER, gone);
    await go(gone, 41.4, 12.4, -10);
    const { token } = await made({ devices: [VAN, gone], show: ['trail'] });
    const placesOf = async (): Promise<string> =>
      (await show(token)).body.data.devices.map(({ place }: { place: string }) => place).join();
    await waitFor(async () => {
      clock.set(clock() + 500);
      return (await placesOf()) === 'known,known';
    });
    await owner.admin.run('device:delete', '--imei', gone);
    const isGone = async () =>
      (await callApi(pod, 'GET', `/v3/devices/${gone}`, { key: owner.key })).status === 404;
    await waitFor(isGone);
    clock.set(clock() + 500);
    assert.equal(await placesOf(), 'known');
  });

  test('is 404 for any token that there is not, and reaches nothing else', async () => {
    const missing = faceOf(await show('A'.repeat(43)));
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.stringMatching(/^[A-Za-z0-9_-]{43}$/),
          fc.stringMatching(/^[A-Za-z0-9_.~%-]{1,60}$/),
          fc.constantFrom('%00', '..%2f..%2fv3%2fdevices', `${'A'.repeat(43)}%0a`, "'--", 'stream'),
        ),
        async (token) => {
          const reply = await callApi(pod, 'GET', `/share/${token.replaceAll(/%(?![0-9a-f]{2})/g, '')}x`, {
            key: owner.key,
          });
          assert.deepEqual(faceOf(reply), missing);
        },
      ),
      { numRuns: 50 },
    );
  });

  test('its token is no key, session or token of another kind anywhere: it does what an invented one does', async () => {
    const { token } = await made({ devices: [VAN, TRUCK] });
    const routes = describedRoutes().filter(({ versions }) => !versions.includes('share'));
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...routes),
        fc.constantFrom('key', 'bearer', 'query', 'path', 'everywhere'),
        fc.constantFrom(VAN, FOREIGN, String(area), '1'),
        async ({ method, path, versions }, place, id) => {
          const answerTo = async (shown: string) => {
            const isEverywhere = place === 'everywhere';
            const inPath = isEverywhere || place === 'path' ? shown : id;
            const query =
              isEverywhere || place === 'query' ? `?token=${shown}&key=${shown}&api_key=${shown}` : '';
            const reply = await callApi(
              pod,
              method,
              `/${versions.at(-1)}${path.replaceAll(/[:*]\w+/g, inPath)}${query}`,
              {
                ...((isEverywhere || place === 'key') && { key: shown }),
                ...((isEverywhere || place === 'bearer') && { token: shown }),
                ...(method !== 'GET' && { body: { token: shown } }),
              },
            );
            const face = JSON.stringify(faceOf(reply)).replaceAll(shown, 'TOKEN');
            return { status: reply.status, face };
          };
          const answer = await answerTo(token);
          assert.deepEqual(answer, await answerTo('C'.repeat(43)));
          assert.ok(answer.status >= 400, `${method} ${path}: ${answer.status}`);
        },
      ),
      { numRuns: IS_TORTURE ? 10_000 : 100 },
    );
  });

  test('is counted by address, also with a wrong token', async (t) => {
    const few = await startPod(owner.url, { t, env: { ...NO_LIMITS, RATE_LIMIT_IP_MINUTE: '3' } });
    const outcomes = [];
    for (let n = 0; n < 4; n++) outcomes.push((await show('B'.repeat(43), few)).status);
    assert.deepEqual(outcomes, [404, 404, 404, 429]);
  });
});

describe('a share ends on every pod', () => {
  const assertEnds = async (
    t: TestContext,
    more: object,
    end: (share: { id: number }) => Promise<unknown>,
  ) => {
    const share = await made(more);
    const streams = [await follow(t, pod, share.token), await follow(t, second, share.token)];
    for (const { messages } of streams) await waitFor(() => messages.length > 0);
    await end(share);
    for (const on of [pod, second]) {
      await waitFor(async () => (await show(share.token, on)).status === 410);
      const { body } = await show(share.token, on);
      assert.deepEqual(body, { error: { code: 'SHARE_ENDED', message: 'this share has ended' } });
    }
    for (const { messages, ended } of streams) {
      await ended;
      assert.equal(messages.at(-1)?.event, 'ended');
    }
    return share;
  };
  const reasonOf = async (id: number) => {
    const { body } = await callApi(pod, 'GET', '/v3/shares', { key: owner.key });
    return body.data.find((share: { id: number }) => share.id === id).end_reason;
  };

  test('by hand', async (t) => {
    const end = ({ id }: { id: number }) => callApi(second, 'DELETE', `/v3/shares/${id}`, { key: owner.key });
    const { id } = await assertEnds(t, {}, end);
    assert.equal(await reasonOf(id), 'deleted');
  });

  test('when one of its vehicles enters the area, and not when another does', async (t) => {
    const staying = await made({ devices: [TRUCK], until_area_id: area });
    const { id } = await assertEnds(t, { until_area_id: area }, () => go(VAN, 41.9, 12.5, 10));
    assert.equal(await reasonOf(id), 'arrived');
    assert.equal((await show(staying.token)).status, 200);
  });

  test('also for a reader whose stream waits behind another of its connection', async (t) => {
    const shares = [await made(), await made()] as const;
    const { port } = new URL(pod.api);
    const socket = connect(Number(port), '127.0.0.1');
    t.after(() => socket.destroy());
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    for (const { token } of shares)
      socket.write(`GET /api/share/${token}/stream HTTP/1.1\r\nHost: x\r\n\r\n`);
    await waitFor(() => text.includes('event: device'));
    await callApi(pod, 'DELETE', `/v3/shares/${shares[1].id}`, { key: owner.key });
    // It is looked at more than once before its connection is free.
    const other = await follow(t, pod, shares[0].token);
    for (let beats = 0; beats < 3; beats++) {
      clock.set(clock() + 10_000);
      await waitFor(() => other.messages.filter(({ event }) => event === 'heartbeat').length > beats);
    }
    await callApi(pod, 'DELETE', `/v3/shares/${shares[0].id}`, { key: owner.key });
    await waitFor(() => text.split('event: ended').length === 3);
  });

  test('by time', async (t) => {
    const expires_at = formatIso(clock() + 2 * MINUTE_MS);
    await assertEnds(t, { expires_at }, async () => clock.set(clock() + 2 * MINUTE_MS));
  });

  test('while its owner is inactive', async (t) => {
    await assertEnds(t, {}, () => owner.admin.run('account:deactivate', '--email', OWNER));
  });
});
