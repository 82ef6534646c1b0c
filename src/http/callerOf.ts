import type { Socket } from 'node:net';
import { readKey, type ShownKey } from '../access/apiKey.ts';
import type { CidrSet } from '../access/cidrSet.ts';
import { type ClientAddress, clientAddress } from '../access/clientAddress.ts';

/** Who calls: what two headers and the peer's address say, read. */
export interface Caller {
  readonly shown: ShownKey;
  readonly client: ClientAddress;
}

interface LastCaller extends Caller {
  readonly apiKey: string | undefined;
  readonly forwardedFor: string | undefined;
}

/**
 * The caller of a request. Clients that poll keep their connection open. While the headers of a connection stay the
 * same, the hash of the key and the address are those of its last request. They are dropped with the connection.
 */
export function callerOf(
  socket: Socket,
  apiKey: string | undefined,
  forwardedFor: string | undefined,
  trustedProxies: CidrSet,
): Caller {
  const last = lastCallers.get(socket);
  if (last !== undefined && last.apiKey === apiKey && last.forwardedFor === forwardedFor) return last;
  const client = clientAddress(socket.remoteAddress, forwardedFor, trustedProxies);
  const caller = { shown: readKey(apiKey), client, apiKey, forwardedFor };
  lastCallers.set(socket, caller);
  return caller;
}

const lastCallers = new WeakMap<Socket, LastCaller>();
