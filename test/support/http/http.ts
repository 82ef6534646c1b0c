import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

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

/**
 * Sends a request whose path goes out as it is: `fetch` would tidy up `//`, `%zz` and dot segments first. Rejects
 * when the answer is not as the description of the API says.
 */
export async function rawRequest(base: string, path: string, options: RawRequest = {}): Promise<RawReply> {
  const reply = await bareRequest(base, path, options);
  const { status, headers, text } = reply;
  const header = (name: string) => headers[name]?.toString();
  // Loaded late: it brings the whole service with it, which many users of this file do not need.
  const { checkDescribed } = await import('./describedAnswer.ts');
  checkDescribed({ method: options.method ?? 'GET', target: path, status, header, text });
  return reply;
}

/** The same for answers of routes and targets that nobody describes. */
export function bareRequest(
  base: string,
  path: string,
  { method = 'GET', headers = {}, body }: RawRequest,
): Promise<RawReply> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, path, method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
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

/**
 * Writes bytes to a socket of its own, piece after piece, and returns what came back until either side hung up.
 * Rejects when the first answer is not as the description of the API says.
 */
export async function exchange(
  base: string,
  pieces: readonly (string | Buffer)[],
  options: ExchangeOptions = {},
): Promise<string> {
  const answer = await bareExchange(base, pieces, options);
  await checkFirstAnswer(pieces.map((piece) => piece.toString('latin1')).join(''), answer);
  return answer;
}

/** Requests and answers that are not whole HTTP are left alone. */
async function checkFirstAnswer(sent: string, received: string): Promise<void> {
  const [, method, target] = /^([A-Z]+) (\S+) HTTP\/1\.1\r\n/.exec(sent) ?? [];
  const [, status, head = '', rest = ''] =
    /^HTTP\/1\.1 (\d+) [^\r]*\r\n(.*?)\r\n\r\n(.*)$/s.exec(received) ?? [];
  if (method === undefined || target === undefined || status === undefined || status === '100') return;
  const headers = new Headers(
    head.split('\r\n').map((line) => line.split(/: ?(.*)/s, 2) as [string, string]),
  );
  const length = method === 'HEAD' ? rest.length : Number(headers.get('content-length') ?? 0);
  if (rest.length < length) return;
  const text = Buffer.from(rest.slice(0, length), 'latin1').toString();
  const { checkDescribed } = await import('./describedAnswer.ts');
  checkDescribed({ method, target, status: Number(status), header: (name) => headers.get(name), text });
}

/** The same for what is hardly HTTP, whose answers are compared with nothing. */
export function bareExchange(
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
