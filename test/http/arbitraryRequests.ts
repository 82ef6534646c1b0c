import { METHODS } from 'node:http';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { anyCharacter } from '../support/http/anyCharacter.ts';
import { INGEST_TOKEN } from '../support/pod.ts';

/** A request as the bytes that go out, and what a failure is called by. */
export interface ArbitraryRequest {
  readonly method: string;
  readonly path: string;
  readonly bytes: Buffer;
}

const methods = METHODS.filter((method) => method !== 'CONNECT');
const oftenOne = (method: string) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(method) }, fc.constantFrom(...methods));

// Text that a request line may carry: no blanks and no control characters.
const urlText = fc.stringMatching(/^[!-~]{0,12}$/);
const escaped = (maxLength: number) =>
  fc.string({ unit: anyCharacter, maxLength }).map((text) => encodeURIComponent(text.toWellFormed()));
const imei = (device: string) => fc.constantFrom(device, '350000000009999', 'x');

const segment = fc.oneof(
  fc.constantFrom(
    ...['api', 'v2', 'v3', 'devices', 'nearest', 'events', 'location', 'history', 'commands', 'areas'],
    ...['1'],
  ),
  fc.constantFrom('', '.', '..', '%2e%2e', '%', '%zz', '%00', '%ff', '%2F', ':imei', '*', '__proto__'),
  urlText.map((text) => text.replaceAll(/[?#]/g, '')),
  escaped(4),
);

const path = (device: string) => {
  const known = fc.oneof(
    imei(device).map((one) => `/api/v2/devices/${one}`),
    fc
      .tuple(
        fc.constantFrom('v2', 'v3'),
        imei(device),
        fc.constantFrom('location', 'history', 'history/summary', 'history/export', 'commands'),
      )
      .map(([version, one, below]) => `/api/${version}/devices/${one}/${below}`),
    fc.constantFrom(
      ...['/api/v2/devices', '/api/v3/devices', '/api/v3/devices/nearest', '/api/v2/events'],
      ...['/api/v3/areas', '/api/v3/areas/1', '/api/v3/areas/1/contains', '/api/v3/areas/1/events'],
      ...['/api/v3/areas/import', '/api/v3/areas/by-external-id/depot', '/healthz', '/readyz'],
    ),
  );
  return fc.oneof(
    { weight: 3, arbitrary: known },
    fc.tuple(known, segment).map(([start, more]) => `${start}/${more}`),
    fc.array(segment, { maxLength: 6 }).map((parts) => `/${parts.join('/')}`),
    fc.array(segment, { maxLength: 4 }).map((parts) => `http://elsewhere.example/${parts.join('/')}`),
    fc.constantFrom('*', '//', '/api/v3?', 'http://', '/?', '/;', '/#', '/api/v3/devices#?limit=1'),
  );
};

const names = [
  ...['lat', 'lng', 'limit', 'offset', 'max_km', 'from', 'to', 'type', 'device', 'status', 'format'],
  ...['dry_run', 'by', 'tz'],
];
const name = fc.oneof(fc.constantFrom(...names, '__proto__', 'constructor'), urlText);
const value = fc.oneof(
  fc.constantFrom(
    ...['', '0', '-1', '41.9', '12.5', '1e309'],
    '9'.repeat(400),
    'NaN',
    '%00',
    '%F0%9F',
    '+',
    'geofence',
  ),
  fc.constantFrom(
    '2026-01-01',
    '0001-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999-23:59',
    '+272000-01-01',
    'geojson',
    ...['day', 'trip', 'Europe/Rome', 'gpx', 'parquet'],
  ),
  fc.double().map(String),
  urlText,
  escaped(8),
);
const pairs = fc
  .array(fc.tuple(name, value), { maxLength: 5 })
  .map((all) => all.map(([n, v]) => `${n}=${v}`).join('&'));
const query = pairs.map((text) => (text === '' ? '' : `?${text}`));

const header = fc.tuple(
  fc.constantFrom(
    ...['Authorization', 'X-API-Version', 'X-Forwarded-For', 'Forwarded', 'Content-Type', 'Content-Encoding'],
    ...[
      ...['Accept', 'Accept-Encoding', 'Expect', 'Range', 'If-None-Match', 'If-Modified-Since'],
      ...['Upgrade', 'Cookie'],
    ],
    ...['Origin', 'Idempotency-Key', 'X-HTTP-Method-Override', 'X-Ingest-Token', 'Host', 'TE', 'Trailer'],
  ),
  fc.oneof(
    fc.constantFrom(
      ...['', 'v1', '100-continue', 'gzip', 'br', 'websocket', 'bytes=0-1', '*', 'application/json'],
    ),
    fc.stringMatching(/^[ -~]{0,20}$/),
    fc.constantFrom('x'.repeat(4_000), '\u00e9\u00ff', '::1, 127.0.0.1'),
  ),
);

/** What the public listener may be sent by anybody, now and then with a key that is known. */
export function apiRequests(device: string, key: string): fc.Arbitrary<ArbitraryRequest> {
  const keyLine = fc.constantFrom(
    '',
    'X-API-Key: fk_?\r\n',
    ...Array<string>(8).fill(`X-API-Key: ${key}\r\n`),
  );
  const body = fc.option(fc.oneof(fc.string({ unit: anyCharacter, maxLength: 200 }), fc.json()), { freq: 3 });
  return fc
    .tuple(oftenOne('GET'), path(device), query, fc.array(header, { maxLength: 4 }), keyLine, body)
    .map(([method, target, search, headers, withKey, content]) => {
      const bytes = Buffer.from(content ?? '');
      const lines = headers.map(([n, v]) => `${n}: ${v}\r\n`).join('');
      const framing = content === null ? '' : `Content-Length: ${bytes.length}\r\n`;
      const head = `${method} ${target}${search} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${withKey}${lines}${framing}\r\n`;
      return { method, path: target, bytes: Buffer.concat([Buffer.from(head, 'latin1'), bytes]) };
    });
}

const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, '', 0, -0, 1e308, -1e308, 5e-324, 360, 90, -180, 2 ** 53, [], {}),
  fc.double({ noNaN: true }),
  fc.string({ unit: anyCharacter, maxLength: 20 }),
  fc.constantFrom('\u0000', '\ud800', 'NULL', '{}', '"', '\\', "'; drop table position", 'sos,,tamper', '🚚'),
);

/** Points that are mostly right in what is required and mostly wrong in what is not. */
function point(device: string, nowMs: number): fc.Arbitrary<object> {
  const mostly = (arbitrary: fc.Arbitrary<unknown>) => fc.oneof({ weight: 12, arbitrary }, oddValue);
  return fc.record(
    {
      imei: mostly(fc.constant(device)),
      recorded_at: mostly(fc.integer({ min: nowMs - 1_209_600_000, max: nowMs + 700_000 })),
      latitude: mostly(fc.double({ min: -90, max: 90, noNaN: true })),
      longitude: mostly(fc.double({ min: -180, max: 180, noNaN: true })),
      altitude_m: oddValue,
      speed_kmh: oddValue,
      heading: oddValue,
      satellites: oddValue,
      odometer_km: oddValue,
      ignition: oddValue,
      alarm: oddValue,
      rfid: oddValue,
      extra: fc.jsonValue(),
    },
    { requiredKeys: ['imei', 'recorded_at', 'latitude', 'longitude'], noNullPrototype: true },
  );
}

function ingestBody(device: string, nowMs: number): fc.Arbitrary<Buffer> {
  const json = (unknown: fc.Arbitrary<unknown>) => unknown.map((one) => JSON.stringify(one));
  const one = point(device, nowMs);
  const batch = json(fc.array(one, { maxLength: 8 }));
  const traccar = fc.record({
    position: fc.oneof(
      one.map(({ recorded_at: fixTime, ...rest }: { recorded_at?: unknown }) => ({ fixTime, ...rest })),
      fc.jsonValue(),
    ),
    device: fc.record({ uniqueId: fc.oneof(fc.constant<unknown>(device), oddValue) }),
  });
  return fc
    .oneof(
      { weight: 4, arbitrary: batch },
      json(one),
      fc.array(json(one), { maxLength: 5 }).map((lines) => lines.join('\n')),
      json(traccar),
      json(fc.jsonValue()),
      fc.string({ unit: anyCharacter, maxLength: 100 }),
      fc.tuple(batch, fc.nat()).map(([text, at]) => text.slice(0, at % (text.length + 1))),
      fc.constantFrom('['.repeat(60_000), '{"a":'.repeat(10_000), '[[],'.repeat(9_000)),
      pairs.map((text) => `id=${device}&lat=41.9&lon=12.5&${text}`),
    )
    .map((text) => Buffer.from(text));
}

/** What the ingest listener may be sent by somebody who knows the token. */
export function ingestRequests(device: string, nowMs: number): fc.Arbitrary<ArbitraryRequest> {
  const target = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('/positions', '/positions', '/traccar', '/osmand') },
    fc
      .tuple(fc.constantFrom('/positions', '/osmand', '/metrics'), urlText)
      .map(([known, more]) => known + more),
    path(device),
  );
  const types = [
    'application/json',
    'application/x-ndjson',
    'text/plain',
    'application/x-www-form-urlencoded',
    '',
  ];
  const encodings = ['identity', 'identity', 'identity', 'gzip', 'gzip cut off', 'br', 'zip'];
  return fc
    .tuple(
      oftenOne('POST'),
      target,
      query,
      fc.constantFrom(...types),
      fc.constantFrom(...encodings),
      ingestBody(device, nowMs),
      fc.boolean(),
    )
    .map(([method, to, search, type, encoding, plain, chunked]) => {
      let content = encoding.startsWith('gzip') ? gzipSync(plain) : plain;
      if (encoding === 'gzip cut off') content = content.subarray(0, -3);
      const head =
        `${method} ${to}${search} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Ingest-Token: ${INGEST_TOKEN}\r\n` +
        `Content-Type: ${type}\r\nContent-Encoding: ${encoding.split(' ')[0]}\r\n`;
      const pieces: (string | Buffer)[] = chunked
        ? [head, 'Transfer-Encoding: chunked\r\n\r\n', ...chunksOf(content), '0\r\n\r\n']
        : [head, `Content-Length: ${content.length}\r\n\r\n`, content];
      return { method, path: to, bytes: Buffer.concat(pieces.map((piece) => Buffer.from(piece))) };
    });
}

function chunksOf(content: Buffer): (string | Buffer)[] {
  const pieces: (string | Buffer)[] = [];
  const size = Math.ceil(content.length / 3);
  for (let at = 0; at < content.length; at += size) {
    const chunk = content.subarray(at, at + size);
    pieces.push(`${chunk.length.toString(16)}\r\n`, chunk, '\r\n');
  }
  return pieces;
}

const noHttp = fc.constantFrom(
  ...['Content-Length: -1\r\n\r\n', 'Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello'],
  ...['Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'],
  ...['Transfer-Encoding: chunked\r\n\r\nzz\r\nhello'],
  ...['Transfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\nxx'],
  ...['Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 'Host : x\r\n\r\n', ' folded: x\r\n\r\n'],
  ...['X: \u0000\r\n\r\n'],
  `X: ${'y'.repeat(20_000)}\r\n\r\n`,
  `${'X: y\r\n'.repeat(300)}\r\n`,
  'CONNECT x:1 HTTP/1.1\r\n\r\n',
  'GET / HTTP/9.9\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '\u0016\u0003\u0001\u0002\u0000\u0001\u0000',
  'Expect: 200-ok\r\nHost: x\r\n\r\n',
);
const starts = [
  'GET / HTTP/1.1\r\n',
  'GET /api/v3/devices HTTP/1.1\r\nHost: x\r\n',
  'POST /positions HTTP/1.1\r\n',
  '',
];

/** What is hardly HTTP, or not at all. */
export const brokenBytes: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.constantFrom(...starts).map((text) => Buffer.from(text)),
    fc.array(
      fc.oneof(
        fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
        noHttp.map((text) => Buffer.from(text, 'latin1')),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([start, rest]) => Buffer.concat([start, ...rest]));
