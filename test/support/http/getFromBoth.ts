import assert from 'node:assert/strict';
import type { Pod, Reply } from '../pod.ts';
import { faceOf } from './application.ts';

const POLLED = /^(\/api\/v[23]\/(?:devices|areas)(?:\/[A-Za-z0-9]+(?:\/(?:location|contains))?)?)(\?.*)?$/;

/**
 * The answer of the polling listener to a GET of a polled route, after the router was asked too: a trailing slash is
 * tolerated everywhere, and leaves the request to the router. Both must give the same status, headers and body.
 */
export async function getFromBoth(pod: Pod, path: string, key?: string): Promise<Reply> {
  const reply = await pod.get(path, key);
  if (!POLLED.test(path)) return reply;
  const routed = await pod.get(path.replace(POLLED, '$1/$2'), key);
  assert.deepEqual(faceOf(routed), faceOf(reply), `${path} is answered by the router as by the listener`);
  return reply;
}
