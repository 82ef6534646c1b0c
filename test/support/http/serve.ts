import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export interface Served {
  readonly port: number;
  /** With http, whatever the server speaks. */
  readonly url: string;
  /** Ends its connections too. A second call does nothing. */
  close(): Promise<void>;
}

/** Listens on a free port of 127.0.0.1, until the test is over or `close` is called. */
export async function serve(
  t: TestContext | undefined,
  answers: RequestListener | Server | TlsServer,
): Promise<Served> {
  const server = typeof answers === 'function' ? createServer(answers) : answers;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  t?.after(close);
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, close };
}
