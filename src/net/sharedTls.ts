import { Agent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect, createSecureContext, type TLSSocket } from 'node:tls';

/** A receiver's certificate is verified when a session is made, and none is resumed for longer than this. */
const SESSIONS_MS = 600_000;
/** The sessions of so many receivers are remembered. */
const SESSIONS_MAX = 1_000;
/** An address that does not connect in this time gives way to the next. */
const NEXT_ADDRESS_AFTER_MS = 1_000;
/** The default groups of OpenSSL 3.5 but the hybrid ones, whose keys cost a quarter of a delivery. */
const CLASSICAL_GROUPS = 'X25519:P-256:X448:P-384:P-521:ffdhe2048:ffdhe3072';

let shared: { readonly agent: ReceiverAgent; readonly madeAtMs: number } | null = null;

/**
 * What connections to receivers have in common. Every connection is a new one, but its handshake may resume a session
 * of an earlier one to the same host, port and name (RFC 8446 section 2.2): half the processor time of a delivery is
 * its handshake. Only sessions whose certificate was verified are kept, and who cannot prove to have made one falls
 * back to a full handshake.
 */
export function sharedAgent(nowMs = performance.now()): Agent {
  if (shared === null || nowMs - shared.madeAtMs > SESSIONS_MS) {
    shared = { agent: new ReceiverAgent(), madeAtMs: nowMs };
  }
  return shared.agent;
}

/** Opens a connection for each request and resumes none. Unlike the global agent it reaches no proxy of the environment. */
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
 * A session is made with the hybrid groups of OpenSSL, safe from whoever records today and has a quantum computer
 * later, and resumed with the classical ones alone: the keys of a resumed connection are made of the session's secret
 * as well (psk_dhe_ke, RFC 8446 section 4.2.9), so they are as safe. Where a receiver has forgotten the session, the
 * one that is made in its place was not, and is not kept.
 */
class ReceiverAgent extends Agent {
  readonly #first = createSecureContext();
  readonly #again = createSecureContext({ ecdhCurve: CLASSICAL_GROUPS });
  /** By name, address and port; the one made last stands last. */
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
      if (session === undefined || socket.isSessionReused()) this.#keep(key, made);
    });
    socket.once('secureConnect', () => {
      if (session !== undefined && !socket.isSessionReused()) this.#forget(key, session);
    });
    socket.once('error', () => {
      if (session !== undefined) this.#forget(key, session);
    });
    return socket;
  }

  #keep(key: string, session: Buffer): void {
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > SESSIONS_MAX && oldest !== undefined) this.#sessions.delete(oldest);
  }

  #forget(key: string, session: Buffer): void {
    if (this.#sessions.get(key) === session) this.#sessions.delete(key);
  }
}
