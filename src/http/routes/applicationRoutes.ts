import type { Route } from './route.ts';

/**
 * What is offered to integrators, once more for the application on v1: the routes of v3 at their paths, and those of
 * webhooks under /webhooks. There a session opens all of them; a key only reads. They are not polled: each call of a
 * session asks Postgres whether it lives.
 */
export function applicationRoutes(offered: readonly Route[]): Route[] {
  return offered.flatMap((route) => {
    if (route.versions.includes('v3')) return [onV1(route, route.path)];
    if (!route.versions.includes('webhooks')) return [];
    return [onV1(route, route.path === '/' ? '/webhooks' : `/webhooks${route.path}`)];
  });
}

function onV1(route: Route, path: string): Route {
  const {
    method,
    scopes,
    needsAllScopes,
    maxBodyBytes,
    takesPieces,
    takesPlainOnly,
    endsItself,
    deadlineMs,
  } = route;
  return {
    method,
    path,
    scopes,
    versions: ['v1'],
    handle: (call) => route.handle(call),
    ...(needsAllScopes && { needsAllScopes }),
    ...(maxBodyBytes !== undefined && { maxBodyBytes }),
    ...(takesPieces && { takesPieces }),
    ...(takesPlainOnly && { takesPlainOnly }),
    ...(endsItself && { endsItself }),
    ...(deadlineMs !== undefined && { deadlineMs }),
  };
}
