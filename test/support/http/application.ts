import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import { type Pod, type Reply, request } from '../pod.ts';
import type { Admin } from '../postgres/admin.ts';

export const PASSWORD = 'correct horse battery';

export interface CallOptions {
  /** An object is sent as JSON; text and bytes as they are, under that type too. */
  readonly body?: unknown;
  readonly token?: string | undefined;
  readonly key?: string | undefined;
  /** Where it comes from, for pods that trust the loopback as a proxy. */
  readonly ip?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Pods that believe the loopback where a call comes from. */
export const BEHIND_PROXY = { TRUST_PROXY: '127.0.0.0/8' };

/** One call below /api, as the application makes it. */
export function callApi(
  pod: Pod,
  method: string,
  path: string,
  { body, token, key, ip, headers = {} }: CallOptions = {},
): Promise<Reply> {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  return request(`${pod.api}/api${path}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(key === undefined ? {} : { 'X-API-Key': key }),
      ...(ip === undefined ? {} : { 'X-Forwarded-For': ip }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
  });
}

/** The answer to a login. */
export function tryLogIn(pod: Pod, email: unknown, password: unknown, ip?: string): Promise<Reply> {
  return callApi(pod, 'POST', '/v1/session', { body: { email, password }, ...(ip && { ip }) });
}

/** The token of a new session. */
export async function logIn(pod: Pod, email: string, password = PASSWORD, ip?: string): Promise<string> {
  const { status, text, body } = await tryLogIn(pod, email, password, ip);
  assert.equal(status, 201, text);
  return body.data.token;
}

/** An account with the password, hashed at a cost that tests can afford: checking takes what its hash says. */
export async function makeOwner(admin: Admin, email: string, ...options: readonly string[]): Promise<void> {
  await admin.run('account:create', '--email', email, '--name', email, ...options);
  await setPassword(admin, email);
}

/** The same for an account that there is. */
export async function setPassword(admin: Admin, email: string): Promise<void> {
  await admin.sql((sql) => sql`update account set password_hash = ${CHEAP_HASH} where email = ${email}`);
}

const CHEAP = { N: 16, r: 1, p: 1 };
const SALT = Buffer.alloc(16, 3);
const CHEAP_HASH = [
  'scrypt',
  CHEAP.N,
  CHEAP.r,
  CHEAP.p,
  SALT.toString('base64url'),
  scryptSync(PASSWORD, SALT, 32, CHEAP).toString('base64url'),
].join('$');

/** Status and code, as in "403 FORBIDDEN"; the status alone where there is no error. */
export function outcomeOf({ status, body }: Reply): string {
  return [status, ...(body?.error === undefined ? [] : [body.error.code])].join(' ');
}

/** What a caller could tell two answers apart by: everything but the time. */
export function faceOf({ status, text, headers }: Reply): unknown {
  return { status, text, headers: [...headers].filter(([name]) => name !== 'date') };
}
