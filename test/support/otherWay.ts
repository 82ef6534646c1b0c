const POLLED = /^(\/api\/v[23]\/(?:devices|areas)(?:\/[A-Za-z0-9]+(?:\/(?:location|contains))?)?)(\?.*)?$/;

/**
 * Polled routes are answered in two ways that nobody can tell apart: before the router, and by it. A trailing slash is
 * tolerated everywhere and leaves the request to the router, so with FLEET_TEST_WAY=router every test that goes
 * through here asks by that way.
 */
export function otherWay(method: string, path: string): string {
  if (process.env['FLEET_TEST_WAY'] !== 'router' || method !== 'GET') return path;
  return path.replace(POLLED, '$1/$2');
}
