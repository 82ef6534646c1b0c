import { signal } from '@preact/signals';
import type { ApiCall } from './curl.ts';
import type { FieldError, Note } from './types.ts';

const STORED_TOKEN = 'fleet-session';

/** The token of the session; null when nobody is logged in. It is gone when the tab is closed. */
export const token = signal<string | null>(sessionStorage.getItem(STORED_TOKEN));

/** What the clock of this machine is behind that of the service, by the last answer: whole seconds, so half a second off. */
let behindMs = 0;

/** The time by the clock of the service, epoch milliseconds. */
export function serverNowMs(): number {
  return Date.now() + behindMs;
}

/** Compares the clocks (RFC 9110 6.6.1). */
export function takeServerTime(response: Response): void {
  const ms = Date.parse(response.headers.get('date') ?? '');
  if (!Number.isNaN(ms)) behindMs = ms - Date.now();
}

export type Reply<T> =
  | {
      readonly ok: true;
      readonly data: T;
      readonly meta: {
        readonly total?: number;
        readonly points?: number;
        readonly window?: { readonly from: string; readonly to: string };
        readonly notes?: readonly Note[];
        readonly warnings?: readonly Note[];
      };
    }
  | {
      readonly ok: false;
      readonly status: number;
      readonly message: string;
      readonly details: readonly FieldError[];
    };

/** One call of v1. A session that has ended leads back to the login. */
export async function call<T>({ method, path, body, idempotencyKey }: ApiCall): Promise<Reply<T>> {
  const asked = token.value;
  const headers = {
    ...(asked === null ? {} : { Authorization: `Bearer ${asked}` }),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
  };
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    return failure(0, 'The service cannot be reached. Check that it runs, then try again.');
  }
  takeServerTime(response);
  const json = await response.json().catch(() => ({}));
  if (response.ok) return { ok: true, data: json.data as T, meta: json.meta ?? {} };
  const { code, message = `The service answered ${response.status}.`, details = [] } = json.error ?? {};
  if (code === 'API_KEY_REQUIRED' && token.value === asked) forgetSession();
  return { ...failure(response.status, message), details };
}

function failure(status: number, message: string) {
  return { ok: false as const, status, message, details: [] };
}

/** What went wrong, or null once the session is open. */
export async function logIn(email: string, password: string): Promise<string | null> {
  const body = { email, password };
  const reply = await call<{ token: string }>({ method: 'POST', path: '/api/v1/session', body });
  if (!reply.ok) return reply.details.map(({ message }) => message).join('; ') || reply.message;
  sessionStorage.setItem(STORED_TOKEN, reply.data.token);
  token.value = reply.data.token;
  return null;
}

export async function logOut(): Promise<void> {
  await call({ method: 'DELETE', path: '/api/v1/session' });
  forgetSession();
}

export function forgetSession(): void {
  sessionStorage.removeItem(STORED_TOKEN);
  token.value = null;
}
