import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { serverNowMs, takeServerTime, timeText } from './format.ts';
import type { ApiCall, Failure, Reply } from './reply.ts';

const STORED_TOKEN = 'fleet-session';
const STORED_END = 'fleet-session-end';
const STORED_ROLE = 'fleet-session-role';

/** The token of the session; null when nobody is logged in. It is gone when the tab is closed. */
export const token = signal<string | null>(globalThis.sessionStorage?.getItem(STORED_TOKEN) ?? null);

/** Why the session ended, to be read at the login; null: there was none, or a person ended it. */
export const sessionEnd = signal<string | null>(null);

/** Of an account: a viewer sees everything and changes nothing. */
type Role = 'member' | 'viewer';

/** The role of the session, as the service said it last; null: not yet. */
const role = signal<Role | null>(roleOf(globalThis.sessionStorage?.getItem(STORED_ROLE)));

/** What is to be said about a role that has changed while the page was open; '' when a person has read it. */
export const roleNote = signal('');

/** Whether to offer what changes something. The service decides; until it has told the role, it is offered. */
export function mayChange(): boolean {
  return role.value !== 'viewer';
}

/** One call of v1. A session that has ended leads back to the login. */
export async function call<T>(asked: ApiCall): Promise<Reply<T>> {
  const response = await answerTo(asked);
  if (!(response instanceof Response)) return response;
  const json = await response.json().catch(() => ({}));
  return { ok: true, data: json.data as T, meta: json.meta ?? {} };
}

/** The bytes at a path; none where there is nothing. */
export async function callBytes(path: string, signal: AbortSignal): Promise<Reply<Uint8Array>> {
  const response = await answerTo({ method: 'GET', path }, signal);
  if (!(response instanceof Response)) return response;
  const bytes = await response.arrayBuffer().catch(() => new ArrayBuffer(0));
  return { ok: true, data: new Uint8Array(bytes), meta: {} };
}

async function answerTo(
  { method, path, body, idempotencyKey }: ApiCall,
  signal?: AbortSignal,
): Promise<Response | Failure> {
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
      ...(signal === undefined ? {} : { signal }),
    });
  } catch {
    return failure(0, 'The service cannot be reached. Check that it runs, then try again.');
  }
  takeServerTime(response);
  if (response.ok) return response;
  const json = await response.json().catch(() => ({}));
  const { code, message = `The service answered ${response.status}.`, details = [] } = json.error ?? {};
  if (code === 'API_KEY_REQUIRED' && token.value === asked) forgetSession();
  if (code === 'INSUFFICIENT_SCOPE') void askRole();
  const { status } = response;
  return status === 429
    ? { ...failure(status, limitText(message, Date.now())), limit: message }
    : { ...failure(status, message), details };
}

function failure(status: number, message: string): Failure {
  return { ok: false, status, message, limit: null, details: [] };
}

/** What went wrong, or null once the session is open. */
export async function logIn(email: string, password: string): Promise<string | null> {
  const body = { email, password };
  const reply = await call<{ token: string; expires_at: string; role: Role }>({
    method: 'POST',
    path: '/api/v1/session',
    body,
  });
  if (!reply.ok) return reply.details.map(({ message }) => message).join('; ') || reply.message;
  sessionStorage.setItem(STORED_TOKEN, reply.data.token);
  sessionStorage.setItem(STORED_END, reply.data.expires_at);
  sessionEnd.value = null;
  takeRole(reply.data.role);
  token.value = reply.data.token;
  return null;
}

export async function logOut(): Promise<void> {
  await call({ method: 'DELETE', path: '/api/v1/session' });
  forgetSession();
  sessionEnd.value = null;
}

/** The service does not know the session any more. */
export function forgetSession(): void {
  sessionEnd.value = sessionEndText(sessionStorage.getItem(STORED_END), serverNowMs());
  sessionStorage.removeItem(STORED_TOKEN);
  sessionStorage.removeItem(STORED_END);
  sessionStorage.removeItem(STORED_ROLE);
  role.value = null;
  roleNote.value = '';
  token.value = null;
}

/** Asking costs a call of the account's limits. */
const ROLE_EVERY_MS = 10_000;
let roleAskedAtMs = Number.NEGATIVE_INFINITY;

/** Asks for the role, unless it was asked for a moment ago. */
export async function askRoleAgain(): Promise<void> {
  if (performance.now() - roleAskedAtMs >= ROLE_EVERY_MS) await askRole();
}

async function askRole(): Promise<void> {
  const asked = token.value;
  if (asked === null) return;
  roleAskedAtMs = performance.now(); // also when it is not answered
  const reply = await call<{ role: Role }>({ method: 'GET', path: '/api/v1/session' });
  if (reply.ok && token.value === asked) takeRole(reply.data.role);
}

const ROLE_NOTES: Readonly<Record<Role, string>> = {
  viewer:
    'Your account is a viewer now: you see everything, and change nothing. What you had begun cannot be saved.',
  member: 'Your account may change things again.',
};

function takeRole(now: Role): void {
  const before = role.peek();
  roleAskedAtMs = performance.now();
  sessionStorage.setItem(STORED_ROLE, now);
  role.value = now;
  if (before !== null && before !== now) roleNote.value = ROLE_NOTES[now];
}

function roleOf(text: string | null | undefined): Role | null {
  return text === 'member' || text === 'viewer' ? text : null;
}

/** Why a session ended that would have lasted until a time (ISO 8601; null: unknown). The service does not say it. */
export function sessionEndText(expiresAt: string | null, nowMs: number): string {
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs
    ? 'Your session ended because its time was over. Log in again.'
    : 'Your session was ended: by a logout, a new password, or because the account was deactivated. Log in again.';
}

interface Loaded<T> {
  /** Null until the first answer. While it is asked for again, the last one stands. */
  readonly reply: Reply<T> | null;
  reload(): void;
}

/**
 * What a GET answers (null: nothing is asked); asked for again when the path or `round` changes, and with `reload`.
 * What was refused for a time is asked for again after half a minute.
 */
export function useLoaded<T>(path: string | null, round = 0): Loaded<T> {
  const [loaded, setLoaded] = useState<{ path: string; reply: Reply<T> } | null>(null);
  const [reloads, setReloads] = useState(0);
  useEffect(() => {
    if (path === null) return;
    let isCurrent = true;
    let again: ReturnType<typeof setTimeout> | undefined;
    void call<T>({ method: 'GET', path }).then((reply) => {
      if (!isCurrent) return;
      setLoaded({ path, reply });
      if (isRefusedForNow(reply)) again = setTimeout(() => setReloads((before) => before + 1), AGAIN_MS);
    });
    return () => {
      isCurrent = false;
      clearTimeout(again);
    };
  }, [path, round, reloads]);
  const reply = loaded?.path === path ? loaded.reply : null;
  return { reply, reload: () => setReloads((before) => before + 1) };
}

/** The value, but changed at most once in `everyMs`: what it leads to costs a call of the account's limits. */
export function usePaced<T>(value: T, everyMs: number): T {
  const shown = useRef(value);
  const changedAtMs = useRef(Number.NEGATIVE_INFINITY);
  const [draws, drawAgain] = useState(0);
  const waitMs = changedAtMs.current + everyMs - performance.now();
  if (value !== shown.current && waitMs <= 0) {
    shown.current = value;
    changedAtMs.current = performance.now();
  }
  const isWaiting = value !== shown.current;
  useEffect(() => {
    if (!isWaiting) return;
    const timer = setTimeout(() => drawAgain((count) => count + 1), waitMs);
    return () => clearTimeout(timer);
  }, [value, isWaiting, everyMs, draws]); // once more when a timer was early by a part of a millisecond
  return shown.current;
}

/** After this a call that was refused for a time is made again. */
export const AGAIN_MS = 30_000;
/** Unreachable, over a limit, or without the database: all of them pass. */
const PASSING = [0, 429, 503];

/** Whether a call was refused for a time only. */
export function isRefusedForNow(
  reply: { readonly ok: true } | { readonly ok: false; readonly status: number },
): boolean {
  return !reply.ok && PASSING.includes(reply.status);
}

/** Settles after the time, or at once when it is aborted. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A refusal by a limit at `refusedAtMs`, with the time at which it has ended at the latest. */
function limitText(message: string, refusedAtMs: number): string {
  const endsByMs = limitEndsByMs(message, refusedAtMs);
  return endsByMs === null ? message : `${message}, until ${timeText(endsByMs, 'time')} at the latest`;
}

/**
 * When the limit that a message names has ended at the latest (epoch milliseconds), if it refused a call at `refusedAtMs`:
 * its window began before that, and is a minute or an hour long. Null for a message about anything else. By contract
 * the API does not say when a limit ends, so the message is the only source.
 */
export function limitEndsByMs(message: string, refusedAtMs: number): number | null {
  if (/ per minute$/.test(message)) return refusedAtMs + MINUTE_MS;
  return / per hour$/.test(message) ? refusedAtMs + HOUR_MS : null;
}
