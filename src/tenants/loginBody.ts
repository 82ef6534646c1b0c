import { BODY_INVALID, type FieldError } from '../lib/fieldError.ts';
import { isPlainText } from '../lib/nameText.ts';
import { isJsonObject, isMissing } from '../lib/parseJson.ts';
import { fail, ok, type Result } from '../lib/result.ts';

export interface Login {
  /** Spelled as in accounts. */
  readonly email: string;
  readonly password: string;
}

const EMAIL_MAX_CHARS = 254;
export const PASSWORD_MAX_CHARS = 1_000;

/**
 * The body of a login. What no account could have is an error here; that says nothing about the accounts that exist.
 * Never throws, whatever the body.
 */
export function parseLogin(body: unknown): Result<Login, readonly FieldError[]> {
  if (!isJsonObject(body)) return fail([BODY_INVALID]);
  const email = typeof body['email'] === 'string' ? readEmail(body['email']) : null;
  const password = body['password'];
  const errors = [...emailErrors(body['email'], email), ...passwordErrors(password)];
  if (errors.length > 0 || email === null || typeof password !== 'string') return fail(errors);
  return ok({ email, password });
}

/** Trimmed and in lower case, as accounts are stored; null when the text is not an e-mail address. */
export function readEmail(text: string): string | null {
  // Bounded before all else: a body may hold a megabyte of it.
  if (text.length > 2 * EMAIL_MAX_CHARS) return null;
  const email = text.trim().toLowerCase();
  const isEmail = /^[^\s@]+@[^\s@]+$/.test(email) && isPlainText(email) && email.length <= EMAIL_MAX_CHARS;
  return isEmail ? email : null;
}

function emailErrors(sent: unknown, email: string | null): FieldError[] {
  if (email !== null) return [];
  return isMissing(sent) || sent === ''
    ? [{ field: 'email', code: 'REQUIRED', message: 'email is required' }]
    : [{ field: 'email', code: 'INVALID', message: 'email must be an e-mail address' }];
}

function passwordErrors(sent: unknown): FieldError[] {
  if (isMissing(sent) || sent === '') {
    return [{ field: 'password', code: 'REQUIRED', message: 'password is required' }];
  }
  if (typeof sent !== 'string') {
    return [{ field: 'password', code: 'INVALID', message: 'password must be text' }];
  }
  if (sent.length <= PASSWORD_MAX_CHARS) return [];
  const message = `password has more than ${PASSWORD_MAX_CHARS} characters`;
  return [{ field: 'password', code: 'TOO_LONG', message }];
}
