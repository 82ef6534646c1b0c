import { type LoadResult, measureLoad } from '../measureLoad.ts';
import { answerQuestions } from '../worker.ts';

/** A load on one server: as many GET requests as it answers, over connections that stay open. */
export interface HttpLoad {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Asked in turn by every connection. */
  readonly paths: readonly string[];
  /** API keys that ask in turn, in place of the one of the headers. */
  readonly keys: readonly string[];
  readonly connections: number;
  readonly seconds: number;
}

// A worker: the load is made in a process of its own, so that the server has its processor for itself.
answerQuestions(
  ({ url, headers, paths, keys, connections, seconds }: HttpLoad): Promise<LoadResult> =>
    measureLoad({
      url,
      connections,
      duration: seconds,
      headers: { ...headers },
      requests: paths.map((path, n) => ({
        method: 'GET',
        path,
        ...(keys.length === 0
          ? {}
          : { headers: { ...headers, 'X-API-Key': keys[n % keys.length] as string } }),
      })),
    }),
);
