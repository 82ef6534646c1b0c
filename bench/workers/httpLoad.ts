import { type LoadResult, measureLoad } from '../measureLoad.ts';
import { answerQuestions } from '../worker.ts';

/** A load on one server: as many GET requests as it answers, over connections that stay open. */
export interface HttpLoad {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Asked in turn by every connection. */
  readonly paths: readonly string[];
  readonly connections: number;
  readonly seconds: number;
}

// A worker: the load is made in a process of its own, so that the server has its processor for itself.
answerQuestions(
  ({ url, headers, paths, connections, seconds }: HttpLoad): Promise<LoadResult> =>
    measureLoad({
      url,
      connections,
      duration: seconds,
      headers: { ...headers },
      requests: paths.map((path) => ({ method: 'GET', path })),
    }),
);
