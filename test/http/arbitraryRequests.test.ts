import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { pino } from 'pino';
import { ERRORS } from '../../src/http/answer.ts';
import { bareExchange, exchange } from '../support/http/http.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { patienceMs } from '../support/patience.ts';
import { INGEST_TOKEN } from '../support/pod.ts';
import { runs } from '../support/torture.ts';
import { type ArbitraryRequest, apiRequests, brokenBytes, ingestRequests } from './arbitraryRequests.ts';

const VAN = '350000000000001';
const SEED = 20_261_120;
const NOW_MS = Date.now();
/** An answer that takes longer is none. */
const HANG_MS = 10_000;

interface Answered {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

describe('a request of any shape', () => {
  /** Lines of the pod's log at level error and above. */
  const errors: string[] = [];
  const collect = (line: string): void => {
    if ((JSON.parse(line) as { level: number }).level >= 50) errors.push(line);
  };
  const owner = ownerPod({
    devices: [{ imei: VAN, name: 'Van 12' }],
    log: pino({ level: 'trace' }, { write: collect }),
  });
  const { pod } = owner;
  before(() => pod.points([{ imei: VAN, recorded_at: NOW_MS, latitude: 41.9, longitude: 12.5 }]));

  /** What is still true after all of them. */
  async function assertUnharmed(): Promise<void> {
    const { status, body } = await pod.get(`/api/v3/devices/${VAN}`, owner.key);
    assert.deepEqual([status, body.data.name], [200, 'Van 12']);
    assert.equal((await pod.get(`/api/v2/devices/${VAN}/history?limit=1`, owner.key)).status, 200);
    assert.equal((await pod.get('/readyz')).status, 200);
    assert.deepEqual(errors, []);
  }

  /** What the public listener answers is held against the description of the API. */
  async function ask(base: string, { bytes }: ArbitraryRequest): Promise<Answered> {
    const send = base === pod.api ? exchange : bareExchange;
    let timer: NodeJS.Timeout | undefined;
    const hang = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no answer to ${JSON.stringify(String(bytes))}`)),
        patienceMs(HANG_MS),
      );
    });
    const raw = await Promise.race([send(base, [bytes]), hang]).finally(() => clearTimeout(timer));
    const [head = '', ...rest] = raw.replace(/^(HTTP\/1.1 100 Continue\r\n\r\n)+/, '').split('\r\n\r\n');
    return { status: Number(head.slice(9, 12)), head, body: rest.join('\r\n\r\n') };
  }

  /** An answer of this service: a documented status and either nothing, or data, or a registered error. */
  function assertDocumented({ status, head, body }: Answered, { method, path }: ArbitraryRequest): void {
    assert.ok(status >= 200 && status < 500, `${method} ${path}: ${head}`);
    if (method === 'HEAD' || status === 204 || head.includes('text/')) return;
    // An export is a file of lines.
    if (status === 200 && head.includes('application/x-ndjson')) return;
    const { error, data } = JSON.parse(unpacked(head, Buffer.from(body, 'latin1')).toString('utf8'));
    if (status < 300) {
      assert.ok(error === undefined && (data !== undefined || /^\/(healthz|readyz)/.test(path)), body);
    } else if (typeof error === 'object') {
      assert.equal(ERRORS[error.code as keyof typeof ERRORS]?.[0], status, body);
      assert.equal(typeof error.message, 'string');
    } else {
      assert.equal(typeof error, 'string', body);
    }
  }

  test('has a documented answer of the public listener, and never a 5xx', async () => {
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(apiRequests(VAN, owner.key), async (request) => {
        const answered = await ask(pod.api, request);
        seen.add(answered.status);
        assertDocumented(answered, request);
        const isV3 = /^(http:\/\/[^/]*)?\/api\/v3([/?#]|$)/.test(request.path);
        const fromTheParser = /is not valid HTTP|headers are too large/.test(answered.body);
        if (!isV3) assert.doesNotMatch(answered.head, /X-API-Status/);
        // What cannot be read may come in pieces, of which the first is gone.
        else if (!fromTheParser) assert.match(answered.head, /^X-API-Status: beta$/m);
      }),
      { seed: SEED, numRuns: runs(75) },
    );
    for (const status of [200, 400, 403, 404, 405]) assert.ok(seen.has(status), `no answer was ${status}`);
    await assertUnharmed();
  });

  test('has a documented answer of the ingest listener, and never a 5xx', async () => {
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(ingestRequests(VAN, NOW_MS), async (request) => {
        const answered = await ask(pod.ingest, request);
        assertDocumented(answered, request);
        accepted += Number(/"accepted":(\d+)/.exec(answered.body)?.[1] ?? 0);
      }),
      { seed: SEED, numRuns: runs(75) },
    );
    assert.ok(accepted > 10, `only ${accepted} points were good enough to be stored`);
    await assertUnharmed();
  });

  test('that is hardly HTTP is answered or cut, and never with a 5xx', async () => {
    await fc.assert(
      fc.asyncProperty(brokenBytes, async (bytes) => {
        for (const base of [pod.api, pod.ingest]) {
          const raw = await bareExchange(base, [bytes], { halfClose: true });
          for (const [, status] of raw.matchAll(/^HTTP\/1\.1 (\d+)/gm)) assert.ok(Number(status) < 500, raw);
        }
      }),
      { seed: SEED, numRuns: runs(25) },
    );
    await assertUnharmed();
  });

  test('that breaks off leaves nothing behind', async () => {
    const points = JSON.stringify([{ imei: VAN, recorded_at: NOW_MS - 5_000, latitude: 7, longitude: 7 }]);
    const head = (path: string, more: string): string =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Ingest-Token: ${INGEST_TOKEN}\r\n${more}\r\n\r\n`;
    for (const path of ['/positions', '/traccar', '/osmand']) {
      for (const framing of [`Content-Length: ${points.length + 1}`, 'Transfer-Encoding: chunked']) {
        for (const pieces of [
          [head(path, framing)],
          [head(path, framing).slice(0, 30)],
          [head(path, framing), points.slice(0, 20)],
          [head(path, framing), points],
          [head(path, `Content-Encoding: gzip\r\n${framing}`), gzipSync(points).subarray(0, 20)],
        ]) {
          await exchange(pod.ingest, pieces, { hangUp: true });
        }
      }
    }
    const { body } = await pod.get(`/api/v3/devices/${VAN}/history?limit=1000`, owner.key);
    assert.ok(body.data.every((point: { latitude: number }) => point.latitude !== 7));
    await assertUnharmed();
  });

  test('that comes byte by byte is taken', async () => {
    const point = JSON.stringify({ imei: VAN, recorded_at: NOW_MS - 6_000, latitude: 8, longitude: 8 });
    const request =
      `POST /positions HTTP/1.1\r\nHost: x\r\nX-Ingest-Token: ${INGEST_TOKEN}\r\nConnection: close\r\n` +
      `Content-Length: ${point.length}\r\n\r\n${point}`;
    const raw = await exchange(pod.ingest, [...request]);
    assert.match(raw, /^HTTP\/1.1 200 .*"accepted":1/s);
    await assertUnharmed();
  });
});

/** The body, which is compressed where the request allows it. */
function unpacked(head: string, body: Buffer): Buffer {
  const encoding = /^content-encoding: (\w+)/im.exec(head)?.[1];
  if (encoding === 'br') return brotliDecompressSync(body);
  return encoding === 'gzip' ? gunzipSync(body) : body;
}
