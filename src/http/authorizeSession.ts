import type { Request } from 'express';
import type { AccessDecision } from '../access/authorizer.ts';
import type { SessionAuthorizer } from '../access/sessionAuthorizer.ts';
import { type AuthorizePorts, authorizeRequest, clientOf } from './authorize.ts';
import { callerHeaders } from './callerHeaders.ts';
import type { ApiVersion } from './route.ts';

export interface ApplicationPorts extends AuthorizePorts {
  readonly sessions: SessionAuthorizer;
}

/**
 * The caller where sessions count as well as keys: on v1 and on the management of webhooks. With both headers X-API-Key
 * decides. A login needs neither, so its headers are ignored.
 *
 * @param request as a middleware mounted at the version's prefix sees it
 */
export function authorizeSessionCall(
  ports: ApplicationPorts,
  version: ApiVersion,
  request: Request,
  nowMs: number,
): AccessDecision | Promise<AccessDecision> {
  const client = clientOf(ports, request);
  if (version === 'v1' && isLogin(request)) return ports.sessions.authorizeAnybody(client, nowMs);
  if ((callerHeaders(request.rawHeaders).apiKey ?? '') !== '') return authorizeRequest(ports, request, nowMs);
  // All of them: `headers` keeps the first and passes over the others without a word.
  return ports.sessions.authorize(request.headersDistinct['authorization'] ?? [], client, nowMs);
}

function isLogin({ method, path }: Request): boolean {
  return method === 'POST' && (path === '/session' || path === '/session/');
}
