import type { Request } from 'express';
import type { Admission } from '../flows/admit.ts';
import type { SessionAdmittance } from '../flows/admitSession.ts';
import { type AdmissionPorts, admitRequest, clientOf } from './admission.ts';
import { callerHeaders } from './callerHeaders.ts';
import type { ApiVersion } from './route.ts';

export interface ApplicationPorts extends AdmissionPorts {
  readonly sessions: SessionAdmittance;
}

/**
 * Who calls, where the application's sessions count as well as keys: on v1 and on the management of webhooks. With both
 * headers X-API-Key decides. Logging in needs neither, so what it carries of them is not looked at.
 *
 * @param request as a middleware mounted at the version's prefix sees it
 */
export function admitApplicationCall(
  ports: ApplicationPorts,
  version: ApiVersion,
  request: Request,
  nowMs: number,
): Admission | Promise<Admission> {
  const client = clientOf(ports, request);
  if (version === 'v1' && isLogin(request)) return ports.sessions.admitAnybody(client, nowMs);
  if ((callerHeaders(request.rawHeaders).apiKey ?? '') !== '') return admitRequest(ports, request, nowMs);
  // All of them: `headers` keeps the first and passes over the others without a word.
  return ports.sessions.admit(request.headersDistinct['authorization'] ?? [], client, nowMs);
}

function isLogin({ method, path }: Request): boolean {
  return method === 'POST' && (path === '/session' || path === '/session/');
}
