import type { IncomingMessage } from 'node:http';
import type { CidrSet } from '../access/cidrSet.ts';
import { type ClientAddress, clientAddress } from '../access/clientAddress.ts';
import type { Admission, Admittance } from '../flows/admit.ts';
import { type Answer, errorAnswer, plainErrorAnswer } from './answer.ts';
import { callerHeaders } from './callerHeaders.ts';
import { callerOf } from './callerOf.ts';
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
  const { shown, client } = callerOf(request.socket, apiKey, forwardedFor, trustedProxies);
  return admittance.admit(shown, client, nowMs);
}

/** Where a call comes from. */
export function clientOf(
  { trustedProxies }: Pick<AdmissionPorts, 'trustedProxies'>,
  request: IncomingMessage,
): ClientAddress {
  const { forwardedFor } = callerHeaders(request.rawHeaders);
  return clientAddress(request.socket.remoteAddress, forwardedFor, trustedProxies);
}

/** Where a session of the application counts as well as a key. */
export function takesSessions(version: ApiVersion): boolean {
  return version === 'v1' || version === 'webhooks';
}

/** The answer to a call that was not let in. */
export function refusalAnswer(
  admission: Exclude<Admission, { kind: 'admitted' }>,
  version: ApiVersion,
): Answer {
  if (admission.kind === 'refused') {
    return admission.code === 'API_KEY_REQUIRED' && takesSessions(version)
      ? errorAnswer(
          admission.code,
          'an API key in X-API-Key, or a session in Authorization: Bearer, is required',
        )
      : errorAnswer(admission.code);
  }
  const message = limitRefusal(admission.limit);
  return version === 'v2' ? plainErrorAnswer(429, message) : errorAnswer('TOO_MANY_REQUESTS', message);
}

type LimitName = Extract<Admission, { kind: 'limited' }>['limit'];

const LIMIT_NAMES: Readonly<Record<LimitName, string>> = {
  ip_minute: 'requests per IP address per minute',
  key_minute: 'requests per key per minute',
  key_hour: 'requests per key per hour',
};

/** Names the limit that is exceeded. */
export function limitRefusal(limit: LimitName): string {
  return `rate limit exceeded: ${LIMIT_NAMES[limit]}`;
}

/** The header X-API-Version belongs to v1: v2 accepts no other value in it, v3 does not look at it. */
export function refuseApiVersion(request: IncomingMessage, version: ApiVersion): Answer | null {
  if (version !== 'v2') return null;
  const { apiVersion } = callerHeaders(request.rawHeaders);
  return apiVersion === undefined || apiVersion === 'v1'
    ? null
    : errorAnswer('BAD_REQUEST', 'the header X-API-Version must not be set');
}
