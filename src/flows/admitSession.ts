import { fingerprint } from '../access/apiKey.ts';
import type { ClientAddress } from '../access/clientAddress.ts';
import { NOBODY, sessionCaller } from '../access/sessionCaller.ts';
import { bearerToken } from '../access/sessionToken.ts';
import { withDeadline } from '../base/deadline.ts';
import type { Gate, GateRequest, GateVerdict } from '../queue/gate.ts';
import { selectSession } from '../store/sessions.ts';
import type { Sql } from '../store/sql.ts';
import type { Admission } from './admit.ts';

/** A call waits this long for Postgres to tell its session. */
const LOOK_UP_DEADLINE_MS = 2_000;

export interface SessionPorts {
  readonly sql: Sql;
  readonly gate: Gate;
}

/**
 * Lets the application's calls in: with a session, or to log in. Order as for keys: IP limit, session, limits. The
 * sessions of an account share the limits of one key, so that logging in again brings no new ones.
 *
 * A token that is missing, malformed, unknown, ended or expired, or whose account is inactive, is no credential at all:
 * API_KEY_REQUIRED in each case, which tells nobody whether a token was ever good.
 *
 * Sessions are not held in memory. One read in Postgres per call is what makes a logout hold at once everywhere; people
 * click, they do not poll. Rejects when Postgres cannot be asked.
 */
export class SessionAdmittance {
  readonly #ports: SessionPorts;

  constructor(ports: SessionPorts) {
    this.#ports = ports;
  }

  /** @param authorization the Authorization headers of the request, as they came */
  async admit(authorization: readonly string[], client: ClientAddress, nowMs: number): Promise<Admission> {
    const ip = client.network;
    const counted = await this.#ask({ ip }, nowMs);
    if (counted.kind === 'limited') return counted;
    const token = bearerToken(authorization);
    if (token === null) return REQUIRED;
    const reading = selectSession(this.#ports.sql, fingerprint(token));
    const session = await withDeadline(reading, LOOK_UP_DEADLINE_MS, 'reading a session');
    if (session === undefined) return REQUIRED;
    // Ids of keys are positive, so the negative one of an account stands for all its sessions.
    const verdict = await this.#ask({ keyId: -session.accountId, refundIp: ip }, nowMs);
    return verdict.kind === 'limited' ? verdict : { kind: 'admitted', caller: sessionCaller(session) };
  }

  /** A call that needs no credentials: only its address is counted. */
  async admitAnybody(client: ClientAddress, nowMs: number): Promise<Admission> {
    const counted = await this.#ask({ ip: client.network }, nowMs);
    return counted.kind === 'limited' ? counted : { kind: 'admitted', caller: NOBODY };
  }

  /** Nothing is read from memory for these calls, so no version is asked for. */
  #ask(charge: Partial<GateRequest>, nowMs: number): GateVerdict | Promise<GateVerdict> {
    const request = { ip: null, keyId: null, refundIp: null, worldIds: [], versions: [], verified: true };
    return this.#ports.gate.admit({ ...request, ...charge }, nowMs);
  }
}

const REQUIRED: Admission = { kind: 'refused', code: 'API_KEY_REQUIRED' };
