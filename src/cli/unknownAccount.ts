import { fail, type Result } from '../lib/result.ts';

export function unknownAccount(email: string): Result<never, string> {
  return fail(`there is no account ${email}; add it with account:create`);
}
