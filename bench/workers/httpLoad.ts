import { type LoadResult, measureLoad } from '../measure/measureLoad.ts';
import { answerQuestions } from '../worker.ts';

/** A load on one server: as many GET requests as it answers, over connections that stay open. */
export interface HttpLoad {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Every connection asks them in turn. */
  readonly paths: readonly string[];
  /** API keys to use in turn, instead of the key in `headers`. */
  readonly keys: readonly string[];
  readonly connections: number;
  readonly seconds: number;
}

// A worker: makes the load in its own process, so that the server has a processor to itself.
answerQuestions(({ url, headers, paths, keys, connections, seconds }: HttpLoad): Promise<LoadResult> => {
  const requests = paths.map((path, n) => {
    const key = keys[n % keys.length];
    return {
      method: 'GET',
      path,
      ...(key !== undefined && { headers: { ...headers, 'X-API-Key': key } }),
    } as const;
  });
  return measureLoad({ url, connections, duration: seconds, headers: { ...headers }, requests });
});
