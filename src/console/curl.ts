export interface ApiCall {
  readonly method: string;
  /** Below the origin, with its query. */
  readonly path: string;
  readonly body?: unknown;
}

/** The call as a line for a POSIX shell. The token stays out of it: it is taken from the variable SESSION. */
export function curlOf(origin: string, { method, path, body }: ApiCall): string {
  return [
    'curl -s',
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    '-H "Authorization: Bearer $SESSION"',
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json' -d ${shellWord(JSON.stringify(body))}`]),
    shellWord(`${origin}${path}`),
  ].join(' ');
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
