import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { otherWay } from './otherWay.ts';

export interface RawReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface RawRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
}

/** Sends a request whose path goes out as it is: `fetch` would tidy up `//`, `%zz` and dot segments first. */
export function rawRequest(
  base: string,
  path: string,
  { method = 'GET', headers = {}, body }: RawRequest = {},
): Promise<RawReply> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { hostname, port, path: otherWay(method, path), method, headers },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
      },
    );
    request.once('error', reject);
    request.end(body);
  });
}

export interface ExchangeOptions {
  /** Hang up right after the last piece, without waiting for an answer. */
  readonly hangUp?: boolean;
  /** Say after the last piece that no more will come. The server then drops a request that is under way. */
  readonly halfClose?: boolean;
}

/** Writes bytes to a socket of its own, piece after piece, and returns what came back until either side hung up. */
export function exchange(
  base: string,
  pieces: readonly (string | Buffer)[],
  { hangUp = false, halfClose = false }: ExchangeOptions = {},
): Promise<string> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(Number(port), hostname, async () => {
      for (const piece of pieces) {
        if (socket.writable) await new Promise<unknown>((written) => socket.write(piece, written));
      }
      if (halfClose) socket.end();
      if (hangUp) socket.destroy();
    });
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
    });
    // A server may hang up on a client that is still talking; what it said before that counts.
    socket.on('error', () => socket.destroy());
    socket.once('close', () => resolve(answer));
  });
}
