import type { AddressInfo, Server } from 'node:net';

/** Listens on a free port of the loopback, which it returns, until the process ends. */
export function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}
