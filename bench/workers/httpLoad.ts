import { type LoadResult, measureLoads } from '../measure/measureLoad.ts';
import type { HttpCalls } from '../measure/openLoop.ts';
import { answerQuestions } from '../worker.ts';

/** A load on one server: as many GET requests as it answers, over connections that stay open. */
export interface HttpLoad extends HttpCalls {
  readonly connections: number;
  readonly seconds: number;
}

// A worker: makes the load in its own process, so that the server has a processor to itself.
answerQuestions(async (load: HttpLoad): Promise<LoadResult> => {
  const { urls, headers, paths, keys = [], connections, seconds } = load;
  const requests = paths.map((path, n) => {
    const key = keys[n % keys.length];
    return key === undefined ? { path } : { path, headers: { ...headers, 'X-API-Key': key } };
  });
  const own = { connections: connections / urls.length, duration: seconds, headers: { ...headers } };
  return measureLoads(urls.map((url) => ({ ...own, url, requests })));
});
