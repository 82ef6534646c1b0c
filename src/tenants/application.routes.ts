import type { Answer } from '../http/answer.ts';
import type { Call, Route } from '../http/route.ts';

/**
 * What is offered to integrators, once more for the application on v1: the routes of v3 at their paths, and those of
 * webhooks under /webhooks. There a session opens all of them; a key only reads.
 */
export function applicationRoutes(offered: readonly Route[]): Route[] {
  return offered.flatMap((route) => {
    if (route.versions.includes('v3')) return [onV1(route, route.path)];
    if (!route.versions.includes('webhooks')) return [];
    return [onV1(route, route.path === '/' ? '/webhooks' : `/webhooks${route.path}`)];
  });
}

function onV1(route: Route, path: string): Route {
  // A call of a session asks Postgres whether the session lives, so it cannot be polled.
  const { isFromMemory: _, ...onV1 } = {
    ...route,
    path,
    versions: ['v1'] as const,
    handle: async (call: Call) => locatedOnV1(await route.handle(call)),
  };
  if (route.versions.includes('v3') || !('describe' in onV1)) return onV1;
  // Query parameters that a webhook route does not know are not named.
  const { describe: _description, ...undescribed } = onV1;
  return undescribed;
}

/** Points the Location of a created resource to v1, where its creator may read it. */
function locatedOnV1(answer: Answer): Answer {
  const location = answer.headers?.['Location'];
  if (location === undefined) return answer;
  const onV1 = location.replace(/^\/api\/(?:v3\/)?/, '/api/v1/');
  return { ...answer, headers: { ...answer.headers, Location: onV1 } };
}
