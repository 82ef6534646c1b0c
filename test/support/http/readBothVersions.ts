import assert from 'node:assert/strict';
import type { Pod, Reply } from '../pod.ts';
import { getFromBoth } from './getFromBoth.ts';

/** GET below /api/v2 and /api/v3, each from the polling listener and the router: the answer, which must be one. */
export async function readBothVersions(pod: Pod, path: string, key?: string): Promise<Reply> {
  const [v2, v3] = [
    await getFromBoth(pod, `/api/v2${path}`, key),
    await getFromBoth(pod, `/api/v3${path}`, key),
  ];
  assert.deepEqual([v2.status, v2.text], [v3.status, v3.text], `v3 answers ${path} as v2 does`);
  return v3;
}
