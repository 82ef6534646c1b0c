import type { Answer } from '../http/answer.ts';
import type { Route } from '../http/route.ts';

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
    // Tells what a v3 route reads.
    ...(route.versions.includes('v3') && 'describe' in route && { describe: route.describe }),
    handle: async (call) => locatedOnV1(await route.handle(call)),
    ...(needsAllScopes && { needsAllScopes }),
    ...(maxBodyBytes !== undefined && { maxBodyBytes }),
    ...(takesPieces && { takesPieces }),
    ...(takesPlainOnly && { takesPlainOnly }),
    ...(endsItself && { endsItself }),
    ...(deadlineMs !== undefined && { deadlineMs }),
  };
}

/** Points the Location of a created resource to v1, where its creator may read it. */
function locatedOnV1(answer: Answer): Answer {
  const location = answer.headers?.['Location'];
  if (location === undefined) return answer;
  const onV1 = location.replace(/^\/api\/(?:v3\/)?/, '/api/v1/');
  return { ...answer, headers: { ...answer.headers, Location: onV1 } };
}
