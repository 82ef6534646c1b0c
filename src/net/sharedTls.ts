import { Agent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect, createSecureContext, type TLSSocket } from 'node:tls';

/** A receiver's certificate is verified when a session is made. No session is resumed after this time. */
const SESSIONS_MS = 600_000;
/** Sessions of this many receivers are remembered. */
const SESSIONS_MAX = 1_000;
/** After this time the next address is tried beside one that does not connect. */
const NEXT_ADDRESS_AFTER_MS = 1_000;
/** The default groups of OpenSSL 3.5 without the hybrid ones, whose keys take a quarter of the time of a delivery. */
const CLASSICAL_GROUPS = 'X25519:P-256:X448:P-384:P-521:ffdhe2048:ffdhe3072';

let shared: { readonly agent: ReceiverAgent; readonly madeAtMs: number } | null = null;

/**
 * The agent of all connections to receivers. Every connection is new, but its handshake may resume a TLS session of an
 * earlier one to the same host, port and name (RFC 8446 section 2.2), because half the processor time of a delivery is
 * its handshake. Only sessions whose certificate was verified are stored. A server that cannot prove it made the
 * session gets a full handshake.
 */
export function sharedAgent(nowMs = performance.now()): Agent {
  if (shared === null || nowMs - shared.madeAtMs > SESSIONS_MS) {
    shared = { agent: new ReceiverAgent(), madeAtMs: nowMs };
  }
  return shared.agent;
}

/** An agent that resumes no session. Unlike the global agent it ignores proxies of the environment. */
export function newAgent(): Agent {
  return new Agent(OPTIONS);
}

const OPTIONS = {
  keepAlive: false,
  maxCachedSessions: 0,
  autoSelectFamily: true,
  autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
};

/**
 * Makes sessions with the hybrid key exchange groups of OpenSSL, which protect recorded traffic from later quantum
 * computers. Resumes them with the classical groups only. That is as safe, because the keys of a resumed connection
 * also depend on the secret of the session (psk_dhe_ke, RFC 8446 section 4.2.9). If a receiver has forgotten the
 * session, the handshake makes a new one with classical groups only. Such a session is not stored.
 */
class ReceiverAgent extends Agent {
  readonly #first = createSecureContext();
  readonly #again = createSecureContext({ ecdhCurve: CLASSICAL_GROUPS });
  /** By name, address and port, in the order in which they were made. */
  readonly #sessions = new Map<string, Buffer>();

  constructor() {
    super(OPTIONS);
  }

  override createConnection(options: RequestOptions): Duplex {
    const key = this.getName(options);
    const session = this.#sessions.get(key);
    const socket: TLSSocket = connect({
      ...(options as object),
      ...(session !== undefined && { session }),
      secureContext: session === undefined ? this.#first : this.#again,
    });
    socket.on('session', (made: Buffer) => {
      if (session === undefined || socket.isSessionReused()) this.#store(key, made);
    });
    socket.once('secureConnect', () => {
      if (session !== undefined && !socket.isSessionReused()) this.#forget(key, session);
    });
    socket.once('error', () => {
      if (session !== undefined) this.#forget(key, session);
    });
    return socket;
  }

  #store(key: string, session: Buffer): void {
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > SESSIONS_MAX && oldest !== undefined) this.#sessions.delete(oldest);
  }

  #forget(key: string, session: Buffer): void {
    if (this.#sessions.get(key) === session) this.#sessions.delete(key);
  }
}
