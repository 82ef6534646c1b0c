import { apiRoutes, describeApi, type RoutePorts } from '../../../src/apiRoutes.ts';
import type { ApiDocument } from '../../../src/http/openapi/document.ts';
import type { Route } from '../../../src/http/route.ts';

/** The description as the service makes it, without a service. */
export function describedApi(): ApiDocument {
  return describeApi(describedRoutes());
}

/** Every route, to be looked at and not to be called: making one touches none of its ports. */
export function describedRoutes(): Route[] {
  const ports: Pick<RoutePorts, 'teardown'> = { teardown: { add: () => undefined } as never };
  return apiRoutes(ports as RoutePorts);
}
