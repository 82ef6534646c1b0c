import type { KeyState } from '../../../src/access/credentials.ts';
import { SCOPES, scopeMask } from '../../../src/access/scopes.ts';
import type { Answer } from '../../../src/http/answer.ts';
import { readQuery } from '../../../src/http/parameters.ts';
import type { Route } from '../../../src/http/route.ts';
import { invariant } from '../../../src/lib/errors.ts';
import { ok } from '../../../src/lib/result.ts';

/** Calls routes in this process, as an authorized caller, without a server. */
export class RouteCalls {
  readonly #routes: readonly Route[];
  readonly #caller: KeyState;
  readonly #nowMs: number;

  constructor(
    routes: readonly Route[],
    { accountId = 1, worldIds = [1], nowMs = Date.now(), scopes = scopeMask(...SCOPES) } = {},
  ) {
    this.#routes = routes;
    this.#nowMs = nowMs;
    this.#caller = {
      id: 1,
      accountId,
      worldIds,
      scopes,
      allowlist: null,
      revoked: false,
      ownerActive: true,
      historyDays: 30,
    };
  }

  /** `path` is that of the route; `query` begins with a question mark, or is empty. */
  get(
    path: string,
    query = '',
    params: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = {},
  ): Answer | Promise<Answer> {
    return this.#answer('GET', path, query, params, null, headers);
  }

  /** `json` is the text of the body. */
  post(path: string, json: string): Answer | Promise<Answer> {
    return this.#answer('POST', path, '', {}, json);
  }

  #answer(
    method: 'GET' | 'POST',
    path: string,
    query: string,
    params: Readonly<Record<string, string>>,
    json: string | null,
    headers: Readonly<Record<string, string>> = {},
  ): Answer | Promise<Answer> {
    const route = this.#routes.find((each) => each.method === method && each.path === path);
    invariant(route, `there is a route ${method} ${path}`);
    const read = readQuery(`/api/v3${path}${query}`, null);
    invariant('query' in read, 'the query can be read');
    return route.handle({
      version: 'v3',
      caller: this.#caller,
      params,
      query: read.query,
      nowMs: this.#nowMs,
      body: json === null ? null : { pieces: [], isJson: true, json: ok(JSON.parse(json) as unknown) },
      header: (name) => headers[name],
    });
  }
}

/** Reads a body as the server does: what is made while it is read as well. */
export async function readPieces({ body }: Answer): Promise<Buffer[]> {
  invariant(body !== null, 'the answer has a body');
  if (typeof body === 'string' || Buffer.isBuffer(body)) return [Buffer.from(body)];
  invariant('next' in body, 'the body ends');
  await body.open();
  const pieces: Buffer[] = [];
  try {
    while (await body.next((piece) => void pieces.push(piece)));
  } finally {
    body.close();
  }
  return pieces;
}
