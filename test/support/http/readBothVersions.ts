import assert from 'node:assert/strict';
import type { Pod, Reply } from '../pod.ts';

/** GET below /api/v2 and /api/v3: the answer, which must be the same. */
export async function readBothVersions(pod: Pod, path: string, key?: string): Promise<Reply> {
  const [v2, v3] = [await pod.get(`/api/v2${path}`, key), await pod.get(`/api/v3${path}`, key)];
  assert.deepEqual([v2.status, v2.text], [v3.status, v3.text], `v3 answers ${path} as v2 does`);
  return v3;
}
