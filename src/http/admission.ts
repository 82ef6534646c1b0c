import type { IncomingMessage } from 'node:http';
import type { CidrSet } from '../access/cidrSet.ts';
import { clientAddress } from '../access/clientAddress.ts';
import type { Admission, Admittance } from '../flows/admit.ts';
import { type Answer, errorAnswer, plainErrorAnswer } from './answer.ts';
import { callerHeaders } from './callerHeaders.ts';
import type { ApiVersion } from './route.ts';

export interface AdmissionPorts {
  readonly admittance: Admittance;
  readonly trustedProxies: CidrSet;
}

/** Who calls, and whether the call may go on. Rejects when Postgres had to be asked and could not. */
export function admitRequest(
  { admittance, trustedProxies }: AdmissionPorts,
  request: IncomingMessage,
  nowMs: number,
): Admission | Promise<Admission> {
  const { apiKey, forwardedFor } = callerHeaders(request.rawHeaders);
  const client = clientAddress(request.socket.remoteAddress, forwardedFor, trustedProxies);
  return admittance.admit(apiKey, client, nowMs);
}

/** The answer to a call that was not let in. */
export function refusalAnswer(
  admission: Exclude<Admission, { kind: 'admitted' }>,
  version: ApiVersion,
): Answer {
  if (admission.kind === 'refused') return errorAnswer(admission.code);
  const message = `rate limit exceeded: ${LIMIT_NAMES[admission.limit]}`;
  return version === 'v2' ? plainErrorAnswer(429, message) : errorAnswer('TOO_MANY_REQUESTS', message);
}

type LimitName = Extract<Admission, { kind: 'limited' }>['limit'];

const LIMIT_NAMES: Readonly<Record<LimitName, string>> = {
  ip_minute: 'requests per IP address per minute',
  key_minute: 'requests per key per minute',
  key_hour: 'requests per key per hour',
};

/** The header X-API-Version belongs to v1: v2 accepts no other value in it, v3 does not look at it. */
export function refuseApiVersion(request: IncomingMessage, version: ApiVersion): Answer | null {
  if (version !== 'v2') return null;
  const { apiVersion } = callerHeaders(request.rawHeaders);
  return apiVersion === undefined || apiVersion === 'v1'
    ? null
    : errorAnswer('BAD_REQUEST', 'the header X-API-Version must not be set');
}
