import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { areaView } from '../../../src/areas/area.ts';
import { AreaAnswers } from '../../../src/areas/areaAnswers.ts';
import { type Area, AreaCatalog } from '../../../src/areas/areaCatalog.memory.ts';
import { areaFeature } from '../../../src/areas/geojson.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import type { StreamedBody } from '../../../src/http/answer.ts';
import { sendStreamed } from '../../../src/http/longBody.ts';
import { Overloaded } from '../../../src/lib/fairSemaphore.ts';
import { WorkTurns } from '../../../src/lib/workTurns.ts';
import { apiSide, keyOf, OTHER_WORLD } from '../../support/http/apiSide.ts';
import { bareExchange, bareRequest } from '../../support/http/http.ts';
import { serve } from '../../support/http/serve.ts';
import { smallPolygon } from '../../support/ingest/polygons.ts';
import { runs } from '../../support/torture.ts';

type Format = 'json' | 'geojson';

const AREAS = 120;
const VERTICES = 200;
const LIST = '/api/v3/areas?limit=200';
const REQUEST = `GET ${LIST} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${keyOf('now')}\r\n\r\n`;
const mine = { 'X-API-Key': keyOf('now') };

const areas = new AreaCatalog();
for (let id = 1; id <= AREAS; id++) areas.put(smallPolygon(id, 1, VERTICES));
areas.put(smallPolygon(1_000, OTHER_WORLD, 4));
const memory = { fleet: new Fleet(), areas };
const side = apiSide(memory);

/** What the list of these areas has always been. */
function plainList(page: readonly Area[], format: Format, total = page.length, offset = 0): string {
  const data =
    format === 'geojson'
      ? { type: 'FeatureCollection', features: page.map(areaFeature) }
      : page.map(areaView);
  return JSON.stringify({ data, meta: { pagination: { limit: 200, offset, count: page.length }, total } });
}

const pageNow = () => areas.page([1], null, 0, 200);

/** The list as one account gets it, and the areas of another account. */
const read = (query = '', method = 'GET') =>
  bareRequest(side.url, `${LIST}${query}`, { method, headers: mine });
async function assertOthersRead(): Promise<void> {
  const headers = { 'X-API-Key': keyOf('other') };
  assert.equal((await bareRequest(side.url, '/api/v3/areas', { headers })).status, 200);
}

function renamed(area: Area, round: number): Area {
  return { ...area, revision: area.revision + 1, definition: { ...area.definition, name: `${round}` } };
}

async function begin(format: Format): Promise<IncomingMessage> {
  const [response] = await once(
    get(`${side.url}${LIST}&format=${format}`, { headers: mine, agent: false }),
    'response',
  );
  return response as IncomingMessage;
}

async function restOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

describe('a long list of areas', () => {
  test('comes first in chunks and then with its length, with the same bytes', async () => {
    for (const format of ['json', 'geojson'] as const) {
      const query = `&format=${format}`;
      const [first, second] = [await read(query), await read(query)];
      const expected = plainList(pageNow(), format);
      assert.ok(first.text === expected && second.text === expected, format);
      assert.equal(first.headers['transfer-encoding'], 'chunked');
      assert.equal(second.headers['content-length'], String(Buffer.byteLength(expected)));
      const { headers, text } = await read(query, 'HEAD');
      assert.deepEqual([text, headers['content-length']], ['', second.headers['content-length']]);
    }
  });

  test('shows one moment, whatever is edited and deleted while it is read', async () => {
    for (let round = 0; round < runs(3); round++) {
      for (const format of ['json', 'geojson'] as const) {
        const expected = plainList(pageNow(), format);
        const response = await begin(format);
        const before = pageNow();
        for (const area of before.slice(0, 50)) areas.remove(area.id);
        for (const area of before) areas.put(renamed(area, round));
        assert.ok((await restOf(response)) === expected, `${round} ${format}`);
      }
    }
  });

  test('ends with its connection for a reader of HTTP/1.0', async () => {
    areas.put(renamed(areas.area([1], 1) as Area, 0));
    const answer = await bareExchange(side.url, [REQUEST.replace('HTTP/1.1', 'HTTP/1.0')]);
    const [head = '', body] = answer.split('\r\n\r\n');
    assert.match(head, /^HTTP\/1\.1 200 /);
    assert.doesNotMatch(head, /chunked|content-length/i);
    assert.ok(Buffer.from(body ?? '', 'latin1').toString() === plainList(pageNow(), 'json'));
  });

  test('is answered in the order of the requests of its connection', async () => {
    const ask = (path: string, more = '') =>
      `GET ${path} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${keyOf('now')}\r\n${more}\r\n`;
    const answer = await bareExchange(side.url, [
      ask('/api/v3/areas/1000') + ask(LIST) + ask(LIST) + ask('/api/v3/areas/x', 'Connection: close\r\n'),
    ]);
    const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1]);
    assert.deepEqual(statuses, ['404', '200', '200', '400']);
  });
});

describe('while long lists are read', () => {
  test('by one account, another is answered before they end', async () => {
    let pending = 12;
    const reading = Array.from({ length: pending }, async () => {
      assert.equal((await read()).status, 200);
      pending--;
    });
    for (let n = 0; n < 5; n++) await assertOthersRead();
    assert.ok(pending > 4, `${pending} of 12 are still being read`);
    await Promise.all(reading);
  });

  test('by nobody who takes them, little memory is held, others are answered, and hanging up gives it back', async () => {
    /** Connections that the server has taken and that are open. */
    const sockets = new Set<Socket>();
    side.server.on('connection', (socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    const whole = Buffer.byteLength(plainList(pageNow(), 'json'));
    const { hostname, port } = new URL(side.url);
    const deaf = Array.from({ length: 30 }, () => {
      const socket = connect({ port: Number(port), host: hostname });
      socket.pause();
      socket.write(REQUEST);
      return socket;
    });
    for (let n = 0; n < 20; n++) {
      await assertOthersRead();
      const held = [...sockets].reduce((sum, socket) => sum + socket.writableLength, 0);
      // Eight at once, each with a piece of 64 KB and what the last area of it adds.
      assert.ok(held <= 8 * 150_000, `${held} bytes of 30 lists of ${whole} bytes`);
    }
    const waiting = read();
    for (const socket of deaf) socket.destroy();
    assert.equal((await waiting).text.length, plainList(pageNow(), 'json').length);
  });
});

describe('a long body', () => {
  test('is made no faster than it is read, and closed when its reader hangs up', async () => {
    const piece = Buffer.alloc(1_000_000, 'x');
    const PIECES = 64;
    for (const readsOn of [true, false]) {
      let made = 0;
      let closed = false;
      const body: StreamedBody = {
        bytes: PIECES * piece.length,
        open: () => Promise.resolve(),
        next: async (take) => {
          await turn();
          take(piece);
          return ++made < PIECES;
        },
        close: () => {
          closed = true;
        },
      };
      let sent: Promise<void> | undefined;
      let held = () => 0;
      const { port, close } = await serve(undefined, (_request, response) => {
        held = () => response.writableLength;
        sent = sendStreamed(response, body, () =>
          response.setHeader('Content-Length', PIECES * piece.length),
        );
      });
      const [response] = await once(get({ port, host: '127.0.0.1', agent: false }), 'response');
      // The kernel takes a few of them before it takes no more.
      for (let before = -1, quiet = 0; quiet < 200; quiet = made === before ? quiet + 1 : 0) {
        before = made;
        await turn();
      }
      assert.ok(made < PIECES / 2 && !closed, `${made} of ${PIECES} pieces for a reader who does not read`);
      assert.ok(held() <= piece.length + 1_000, `${held()} bytes are held`);
      if (readsOn) assert.equal((await restOf(response)).length, PIECES * piece.length);
      else response.destroy();
      await sent;
      assert.deepEqual([closed, made === PIECES], [true, readsOn]);
      await close();
    }
  });

  test('that fails ends the connection, is logged once, and gives its place back', async () => {
    side.logged.length = 0;
    side.observed.length = 0;
    await assert.rejects(
      bareRequest(side.url, '/api/v3/breaks', { headers: mine }),
      (error: NodeJS.ErrnoException) => error.code === 'ECONNRESET',
    );
    assert.deepEqual([side.logged.length, side.closed.length], [1, 1]);
    assert.deepEqual(side.observed, []);
  });

  test('waits for a place, and is refused when too many wait already', async () => {
    const answers = new AreaAnswers(new WorkTurns<string | number>(1));
    const bodyOf = async (accountId: number) =>
      (await answers.list({ accountId, areas: pageNow(), format: 'json' }, {})).body as StreamedBody;
    const bodies = await Promise.all(Array.from({ length: 209 }, () => bodyOf(1)));
    const opened = bodies.slice(0, 208).map((body) => body.open());
    await Promise.all(opened.slice(0, 8));
    await assert.rejects((bodies.at(-1) as StreamedBody).open(), Overloaded);
    await (await bodyOf(2)).open();
    (bodies[0] as StreamedBody).close();
    await opened[8];
  });
});
