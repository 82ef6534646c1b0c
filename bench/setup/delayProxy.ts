import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * Starts a TCP proxy on a free port of the loopback to a port of the loopback, as far away as a round trip of
 * `roundTripMs`. It delays the bytes of each direction by half of that, and the first ones of a connection by a whole
 * round trip more, because the handshake of TCP does not pass through it. It runs until the process ends. Returns its
 * port.
 */
export function openDelayProxy(targetPort: number, roundTripMs: number): Promise<number> {
  const server = createServer({ noDelay: true }, (near) => {
    const openedMs = performance.now();
    const far = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
    forward(near, far, () => openedMs + roundTripMs, roundTripMs / 2);
    forward(far, near, () => 0, roundTripMs / 2);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

/** Hands bytes and the end on in their order, `delayMs` after they came and after `readyMs`. */
function forward(from: Socket, to: Duplex, readyMs: () => number, delayMs: number): void {
  let lastMs = 0;
  const later = (action: () => void): void => {
    lastMs = Math.max(lastMs, Math.max(performance.now(), readyMs()) + delayMs);
    setTimeout(action, Math.max(0, lastMs - performance.now()));
  };
  from.on('data', (chunk: Buffer) => later(() => to.writable && to.write(chunk)));
  from.on('end', () => later(() => to.end()));
  from.on('error', () => to.destroy());
}
