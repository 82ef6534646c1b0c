export interface ApiCall {
  readonly method: string;
  /** Below the origin, with its query. */
  readonly path: string;
  readonly body?: unknown;
  /** The same for the same wish: sent twice, it is done once. */
  readonly idempotencyKey?: string;
}

/** The call as a line for a POSIX shell. The token stays out of it: it is taken from the variable SESSION. */
export function curlOf(origin: string, { method, path, body, idempotencyKey }: ApiCall): string {
  return [
    'curl -s',
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    '-H "Authorization: Bearer $SESSION"',
    ...(idempotencyKey === undefined ? [] : [`-H ${shellWord(`Idempotency-Key: ${idempotencyKey}`)}`]),
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json' -d ${shellWord(JSON.stringify(body))}`]),
    shellWord(`${origin}${path}`),
  ].join(' ');
}

/** The first thing that a key can be asked, as a line for a POSIX shell; null where its permissions open nothing by themselves. */
export function keyCurl(origin: string, key: string, scopes: readonly string[]): string | null {
  const path = FIRST_CALLS.find(([scope]) => scopes.includes(scope))?.[1];
  return path === undefined
    ? null
    : `curl -s -H ${shellWord(`X-API-Key: ${key}`)} ${shellWord(origin + path)}`;
}

const FIRST_CALLS = [
  ['read_devices', '/api/v3/devices?limit=5'],
  ['read_locations', '/api/v3/devices/changes?limit=5'],
  ['read_events', '/api/v3/events?limit=5'],
  ['read_areas', '/api/v3/areas?limit=5'],
  ['manage_webhooks', '/api/webhooks'],
] as const;

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
