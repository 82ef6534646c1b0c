import { createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { type ServerUsage, usageNow } from '../measure/usage.ts';
import { listen } from '../setup/listen.ts';
import { answerQuestions } from '../worker.ts';

export type SocketFloorQuestion =
  | { readonly kind: 'start' }
  | { readonly kind: 'usage' }
  /** Writes `bytes` to every connection, so many times, so far apart. */
  | { readonly kind: 'write'; readonly bytes: number; readonly times: number; readonly everyMs: number };

const WRITES_PER_TURN = 25;
const HEAD = 'HTTP/1.1 200 OK\r\n\r\n';

// A worker: a server that only writes the same bytes to all that have connected.
const sockets: Socket[] = [];
let port = 0;
answerQuestions(async (question: SocketFloorQuestion): Promise<ServerUsage> => {
  if (question.kind === 'start') {
    const server = createServer((socket) => {
      socket.on('error', () => undefined); // its reader has left
      socket.once('data', () => {
        socket.write(HEAD);
        sockets.push(socket);
      });
    });
    port = await listen(server);
  }
  if (question.kind === 'write') {
    const bytes = Buffer.alloc(question.bytes, 'x');
    for (let time = 0; time < question.times; time++) {
      const nextMs = performance.now() + question.everyMs;
      for (const [n, socket] of sockets.entries()) {
        if (n % WRITES_PER_TURN === 0) await nextTurn();
        socket.write(bytes);
      }
      await sleep(Math.max(0, nextMs - performance.now()));
    }
  }
  return { port, ...usageNow() };
});
