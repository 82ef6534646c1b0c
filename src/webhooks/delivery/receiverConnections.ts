import type { ClientRequest } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { type IpAddress, parseIpAddress } from '../../access/ipAddress.ts';

/** The endpoint that a connection is opened for. It serves no other one, and no other revision of it. */
export interface ConnectionOwner {
  readonly webhookId: number;
  readonly accountId: number;
  /** Changes with every change of the endpoint. */
  readonly revision: string;
}

export interface ConnectionLimits {
  /** A kept connection is closed when it has not been used for this long. */
  readonly idleMs: number;
  /** Requests of one connection. */
  readonly requests: number;
  /** Connections that are kept while no request is sent over them, in all and of one account. */
  readonly kept: number;
  readonly keptPerAccount: number;
  /** A receiver's certificate is verified at least this often, whether sessions are resumed or connections kept. */
  readonly verifiedMs: number;
}

/** A kept connection takes about 40 KB of memory. An account has at most 100 endpoints. */
export const CONNECTION_LIMITS: ConnectionLimits = {
  idleMs: 60_000,
  requests: 1_000,
  kept: 512,
  keptPerAccount: 100,
  verifiedMs: 600_000,
};

/** TLS sessions of this many receivers are remembered. */
const SESSIONS_MAX = 1_000;
/** After this time the next address is tried beside one that does not connect. */
const NEXT_ADDRESS_AFTER_MS = 1_000;
/** When TCP begins to probe whether the other side of an idle connection still exists. */
const PROBE_AFTER_MS = 30_000;
/** The default groups of OpenSSL 3.5 without the hybrid ones, whose keys take a quarter of the time of a delivery. */
const CLASSICAL_GROUPS = 'X25519:P-256:X448:P-384:P-521:ffdhe2048:ffdhe3072';

interface Connection {
  readonly owner: ConnectionOwner;
  /** When the certificate was verified. A resumed session counts from the handshake that made it. */
  readonly verifiedAtMs: number;
  requests: number;
}

interface Session {
  readonly bytes: Buffer;
  readonly verifiedAtMs: number;
}

/** What a request passes to the agent: node:http hands its options on, with those that it does not know. */
export type OwnedOptions = RequestOptions & { readonly owner: ConnectionOwner };

/**
 * The connections of a pod to receivers. One is kept for each endpoint, within the limits, so that the next delivery
 * pays for neither a TCP nor a TLS handshake. A request has a connection for itself.
 *
 * A new connection may resume a TLS session of an earlier one to the same host, port and name (RFC 8446 section 2.2),
 * because half the processor time of a delivery is its handshake. Only sessions whose certificate was verified are
 * stored. A server that cannot prove it made the session gets a full handshake.
 *
 * Sessions are made with the hybrid key exchange groups of OpenSSL, which protect recorded traffic from later quantum
 * computers, and resumed with the classical groups only. That is as safe, because the keys of a resumed connection also
 * depend on the secret of the session (psk_dhe_ke, RFC 8446 section 4.2.9). If a receiver has forgotten the session, the
 * handshake makes a new one with classical groups only. Such a session is not stored.
 */
export class ReceiverConnections extends Agent {
  readonly #limits: ConnectionLimits;
  readonly #connections = new WeakMap<Duplex, Connection>();
  /** Kept connections by endpoint, in the order in which they were last used. */
  readonly #kept = new Map<number, Socket>();
  /** Made for the first delivery, since reading all well-known certificates takes a while. */
  #first: SecureContext | undefined;
  #again: SecureContext | undefined;
  /** By name, address and port, in the order in which they were made. */
  readonly #sessions = new Map<string, Session>();

  /** Unlike the global agent it ignores proxies of the environment. */
  constructor(limits: ConnectionLimits = CONNECTION_LIMITS) {
    super({
      keepAlive: true,
      keepAliveMsecs: PROBE_AFTER_MS,
      timeout: limits.idleMs,
      maxCachedSessions: 0,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    });
    this.#limits = limits;
  }

  /** How many connections are kept. */
  get keptCount(): number {
    return this.#kept.size;
  }

  /** Closes the kept connection of an endpoint, unless it goes to one of these addresses and is recent enough. */
  check({ webhookId, revision }: ConnectionOwner, addresses: readonly IpAddress[]): void {
    const socket = this.#kept.get(webhookId);
    if (socket === undefined) return;
    const connection = this.#connections.get(socket);
    const address = parseIpAddress(socket.remoteAddress ?? '');
    const isChecked = addresses.some(({ text }) => text === address?.text);
    if (!isChecked || connection?.owner.revision !== revision || this.#isStale(connection)) {
      this.#drop(webhookId);
    }
  }

  override getName(options?: RequestOptions): string {
    const owner = (options as OwnedOptions | undefined)?.owner;
    return `${super.getName(options)}:${owner?.webhookId}:${owner?.revision}`;
  }

  override createConnection(options: RequestOptions): Duplex {
    const { owner } = options as OwnedOptions;
    const key = super.getName(options);
    const session = this.#sessionOf(key);
    const socket: TLSSocket = connect({
      ...(options as object),
      ...(session !== undefined && { session: session.bytes }),
      // Certificates that only this request trusts have a context of their own.
      ...(options.ca === undefined && { secureContext: this.#contextOf(session) }),
    });
    const verifiedAtMs = (): number =>
      session !== undefined && socket.isSessionReused() ? session.verifiedAtMs : performance.now();
    socket.on('session', (bytes: Buffer) => {
      if (session === undefined || socket.isSessionReused()) {
        this.#store(key, { bytes, verifiedAtMs: verifiedAtMs() });
      }
    });
    socket.once('secureConnect', () => {
      this.#connections.set(socket, { owner, verifiedAtMs: verifiedAtMs(), requests: 1 });
      if (session !== undefined && !socket.isSessionReused()) this.#forget(key, session);
    });
    socket.once('close', () => {
      if (this.#kept.get(owner.webhookId) === socket) this.#kept.delete(owner.webhookId);
    });
    socket.once('error', () => {
      if (session !== undefined) this.#forget(key, session);
    });
    return socket;
  }

  override keepSocketAlive(socket: Socket): boolean {
    const connection = this.#connections.get(socket);
    if (connection === undefined || this.#isStale(connection)) return false;
    // The agent of node:http answers whether a receiver's `Keep-Alive: timeout=` leaves any time.
    const isKept = super.keepSocketAlive(socket) as unknown;
    if (isKept !== true) return false;
    const { webhookId, accountId } = connection.owner;
    this.#drop(webhookId);
    this.#makeRoom(accountId);
    this.#kept.set(webhookId, socket);
    return true;
  }

  override reuseSocket(socket: Socket, request: ClientRequest): void {
    const connection = this.#connections.get(socket);
    if (connection !== undefined) {
      connection.requests++;
      this.#kept.delete(connection.owner.webhookId);
    }
    super.reuseSocket(socket, request);
  }

  /** The connection that has rested longest goes: of the account when that has too many, otherwise of all. */
  #makeRoom(accountId: number): void {
    const { kept, keptPerAccount } = this.#limits;
    if (this.#kept.size < keptPerAccount) return;
    const all = [...this.#kept.keys()];
    const own = all.filter((webhookId) => this.#accountOf(webhookId) === accountId);
    const [rested] = own.length >= keptPerAccount ? own : all.length >= kept ? all : [];
    if (rested !== undefined) this.#drop(rested);
  }

  #accountOf(webhookId: number): number | undefined {
    const socket = this.#kept.get(webhookId);
    return socket && this.#connections.get(socket)?.owner.accountId;
  }

  #drop(webhookId: number): void {
    this.#kept.get(webhookId)?.destroy();
    this.#kept.delete(webhookId);
  }

  #isStale({ requests, verifiedAtMs }: Connection): boolean {
    return requests >= this.#limits.requests || performance.now() - verifiedAtMs > this.#limits.verifiedMs;
  }

  #sessionOf(key: string): Session | undefined {
    const session = this.#sessions.get(key);
    if (session === undefined) return undefined;
    if (performance.now() - session.verifiedAtMs <= this.#limits.verifiedMs) return session;
    this.#sessions.delete(key);
    return undefined;
  }

  #contextOf(session: Session | undefined): SecureContext {
    if (session === undefined) {
      this.#first ??= createSecureContext();
      return this.#first;
    }
    this.#again ??= createSecureContext({ ecdhCurve: CLASSICAL_GROUPS });
    return this.#again;
  }

  #store(key: string, session: Session): void {
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > SESSIONS_MAX && oldest !== undefined) this.#sessions.delete(oldest);
  }

  #forget(key: string, session: Session): void {
    if (this.#sessions.get(key) === session) this.#sessions.delete(key);
  }
}
