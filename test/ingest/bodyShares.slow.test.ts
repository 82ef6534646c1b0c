import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { type AreaApi, areaPod, CIRCLE, gist } from '../support/http/areas.ts';
import { rawRequest } from '../support/http/http.ts';
import { runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const MB = 1024 * 1024;

let victim: AreaApi;
const service = areaPod(async () => {
  victim = await service.newAccount();
});
const { api: attacker } = service;

const place = (n: number) => ({
  type: 'Feature',
  properties: { name: `Gate ${n}` },
  geometry: { type: 'Point', coordinates: [12 + n / 1_000, 41] },
});
const ring = Array.from({ length: 2_000 }, (_, n) => [12 + Math.cos(n / 319), 41 + Math.sin(n / 319)]);
const collection = (...features: object[]) => ({ type: 'FeatureCollection', features });
/** An import that needs the process: 4 polygons of 2000 points, a third of a megabyte. */
const LARGE = JSON.stringify(
  collection(
    ...Array.from({ length: 4 }, (_, n) => ({
      type: 'Feature',
      properties: { name: `Yard ${n}` },
      geometry: { type: 'Polygon', coordinates: [ring] },
    })),
  ),
);

describe('imports of one account at once', () => {
  test('all succeed when they are thirty small ones, and that of another account is answered among them', async () => {
    let answered = 0;
    const imports = Array.from({ length: 30 }, async (_, n) => {
      const reply = await attacker.import(collection(place(n)));
      answered++;
      return reply.status;
    });
    const other = await victim.import(collection(place(0)));
    assert.equal(other.status, 201);
    assert.ok(answered < 30, `${answered} of 30 were first`);
    assert.deepEqual(new Set(await Promise.all(imports)), new Set([201]));
  });

  test('all succeed when they are large ones, and hold up neither a large nor a small one of another account', async () => {
    const ended: string[] = [];
    const call = async (name: string, api: AreaApi, body: unknown) => {
      const reply = await api.import(body, '?dry_run=true');
      ended.push(name);
      return reply.status;
    };
    const imports = Array.from({ length: runs(8) }, () => call('attacker', attacker, LARGE));
    const others = [call('large', victim, LARGE), call('small', victim, collection(place(0)))];
    assert.deepEqual(new Set(await Promise.all([...imports, ...others])), new Set([200]));
    assert.ok(ended.indexOf('small') < ended.length - 4, `${ended}`);
    assert.ok(ended.indexOf('large') < ended.length - 4, `${ended}`);
  });
});

describe('a body that unpacks to a thousand times its bytes', () => {
  /** 31 MB of text in 30 KB. */
  const bomb = gzipSync(
    Buffer.concat([Buffer.from('{"x":"'), Buffer.alloc(31 * MB, 'a'), Buffer.from('"}')]),
  );

  function begin(t: TestContext, bytes: number): Socket {
    const { hostname, port } = new URL(service.pod.api);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    t.after(() => socket.destroy());
    socket.write(
      `POST /api/v3/areas/import HTTP/1.1\r\nHost: x\r\nX-API-Key: ${attacker.key}\r\nContent-Type: application/json\r\n` +
        `Content-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`,
    );
    socket.write(bomb.subarray(0, bytes));
    return socket;
  }
  const heldMb = () => Math.round(process.memoryUsage().arrayBuffers / MB);

  test('holds no more memory than was sent of it until it is there, however many begin', async (t) => {
    const calmMb = heldMb();
    for (let n = 0; n < 60; n++) begin(t, bomb.length - 10);
    assert.equal((await victim.import(LARGE, '?dry_run=true')).status, 200);
    assert.equal((await victim.post(CIRCLE)).status, 201);
    assert.ok(heldMb() - calmMb < 60, `${calmMb} MB, then ${heldMb()} MB`);
  });

  test('holds no more memory than the share of its account when all of them are there', async (t) => {
    let mostMb = 0;
    const watch = setInterval(() => {
      mostMb = Math.max(mostMb, heldMb());
    }, 5);
    t.after(() => clearInterval(watch));
    const calmMb = heldMb();
    const answers: string[] = [];
    const sockets = Array.from({ length: runs(6) }, () => begin(t, bomb.length));
    for (const socket of sockets) socket.once('data', (piece) => answers.push(String(piece).slice(0, 12)));
    assert.equal((await victim.post(CIRCLE)).status, 201);
    assert.equal((await victim.import(LARGE, '?dry_run=true')).status, 200);
    assert.ok(answers.length < sockets.length, 'those of another were answered among them');
    await waitFor(async () => answers.length === sockets.length);
    assert.deepEqual(new Set(answers), new Set(['HTTP/1.1 422']));
    // Two of them at a time, each in the pod and on its way to the process.
    assert.ok(mostMb - calmMb < 200, `${calmMb} MB, then ${mostMb} MB`);
  });
});

describe('the JSON of a body', () => {
  const empties = (count: number) => `{"x":[${'{},'.repeat(count)}{}]}`;

  test('is refused with 413 for more than 40 000 values and names, on every route that takes JSON', async () => {
    const routes = [
      ['POST', '/api/v3/areas'],
      ['PUT', '/api/v3/areas/by-external-id/a'],
      ['PATCH', '/api/v3/areas/1'],
      ['POST', '/api/webhooks'],
      ['PUT', '/api/webhooks/1'],
    ] as const;
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MIN_QUALITY };
    const bodies = [empties(20_000), brotliCompressSync(Buffer.from(empties(340_000)), { params })];
    for (const [method, path] of routes) {
      for (const body of bodies) {
        const reply = await rawRequest(service.pod.api, path, {
          method,
          headers: {
            'X-API-Key': attacker.key,
            'Content-Type': 'application/json',
            ...(typeof body === 'string' ? {} : { 'Content-Encoding': 'br' }),
          },
          body,
        });
        assert.equal(reply.status, 413, `${method} ${path} ${reply.text}`);
        assert.match(reply.text, /PAYLOAD_TOO_LARGE.*40000 values/);
      }
    }
    assert.equal(gist(await attacker.post(empties(10_000))).slice(0, 3), '422', 'it was read');
  });

  test('of an area of 2000 points is taken in either form, and one of 5000 gets the error that it has too many', async () => {
    const points = ring.map(([lng, lat]) => ({ lat, lng }));
    assert.equal((await attacker.post({ name: 'A', type: 'polygon', points })).status, 201);
    const geojson = { type: 'Polygon', coordinates: [ring.map(([lng, lat]) => [lng, lat, 12])] };
    assert.equal((await attacker.post({ name: 'A', geojson })).status, 201);
    const many = [...points, ...points, ...points.slice(1_000)];
    assert.equal(
      gist(await attacker.post({ name: 'A', type: 'polygon', points: many })),
      '422 points TOO_MANY_POINTS',
    );
  });

  test('is read beside calls of another account when it is large', async () => {
    // Names that come once are the dearest to build, and a key for the creation makes the service sort them, too.
    const members = Array.from({ length: 8_000 }, (_, n) => `"k${n}":{"m${n}":1}`);
    const body = `{"name":"A",${members.join(',')}}`;
    let answered = 0;
    const posts = Array.from({ length: 4 }, async (_, n) => {
      const reply = await attacker.post(body, { 'Idempotency-Key': `turn-${n}` });
      answered++;
      return reply.status;
    });
    assert.equal((await victim.get('?limit=1')).status, 200);
    assert.ok(answered < posts.length, 'another is answered in between');
    assert.deepEqual(new Set(await Promise.all(posts)), new Set([422]));
  });
});

test('the 422 to JSON without its media type says which to send, and to anything else what is expected', async () => {
  const send = async (path: string, type: string | null, body: string): Promise<string> => {
    const reply = await rawRequest(service.pod.api, path, {
      method: 'POST',
      headers: { 'X-API-Key': attacker.key, ...(type === null ? {} : { 'Content-Type': type }) },
      body,
    });
    assert.equal(reply.status, 422);
    return JSON.parse(reply.text).error.details[0].message as string;
  };
  for (const path of ['/api/v3/areas', '/api/v3/areas/import', '/api/webhooks']) {
    for (const type of [null, 'text/plain', 'application/x-www-form-urlencoded']) {
      assert.match(await send(path, type, '{}'), /Content-Type: application\/json/, `${path} ${type}`);
    }
    for (const [type, body] of [
      [null, ''],
      ['application/json', '{'],
      ['application/json', ''],
    ] as const) {
      assert.equal(await send(path, type, body), 'the body must be a JSON object', `${path} ${type}`);
    }
  }
});
