import { Agent } from 'node:https';
import { createSecureContext, type SecureContext } from 'node:tls';

/** What connections to receivers have in common: the certificates they trust, and sessions to be resumed. */
export interface SharedTls {
  readonly agent: Agent;
  readonly secureContext: SecureContext;
}

/** A receiver's certificate is verified when a session is made, and none is resumed for longer than this. */
const SESSIONS_MS = 600_000;
/** The sessions of so many receivers are remembered. */
const SESSIONS_MAX = 1_000;
/** An address that does not connect in this time gives way to the next. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

let shared: { readonly tls: SharedTls; readonly madeAtMs: number } | null = null;

/**
 * Every connection is a new one, but its handshake may resume a session of an earlier one to the same host, port and
 * name (RFC 8446 section 2.2): half the processor time of a delivery is its handshake. Only sessions whose certificate
 * was verified are kept, and who cannot prove to have made one falls back to a full handshake.
 */
export function sharedTls(nowMs = performance.now()): SharedTls {
  if (shared === null || nowMs - shared.madeAtMs > SESSIONS_MS) {
    const tls = { agent: newAgent(SESSIONS_MAX), secureContext: createSecureContext() };
    shared = { tls, madeAtMs: nowMs };
  }
  return shared.tls;
}

/** Opens a connection for each request. Unlike the global agent it reaches no proxy of the environment. */
export function newAgent(maxCachedSessions: number): Agent {
  return new Agent({
    keepAlive: false,
    maxCachedSessions,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
  });
}
