import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';

/** A user of the system that Postgres may run as. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const PREFERRED = ['postgres', 'nobody'];

/**
 * The account to run Postgres as when this process is root, which Postgres does not allow: an existing one, since a bare
 * machine has no tool to add one. Throws when there is none.
 */
export async function findUnprivilegedAccount(): Promise<Account> {
  const accounts = parsePasswd(await readFile('/etc/passwd', 'utf8'));
  for (const name of PREFERRED) {
    const account = accounts.find((candidate) => candidate.name === name && candidate.uid > 0);
    if (account) return account;
  }
  throw new Error(
    `Postgres does not run as root, and /etc/passwd names neither of the accounts ${PREFERRED.join(', ')}. ` +
      'Start the service as another user, or set DATABASE_URL.',
  );
}

/** Lines of passwd(5): name:password:uid:gid:comment:home:shell. */
function parsePasswd(text: string): Account[] {
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 4)
    .map((fields) => ({ name: fields[0] ?? '', uid: Number(fields[2]), gid: Number(fields[3]) }));
}

/** Whether the account can enter a folder: asked of the system, since ACLs and mounts have their say too. */
export function canEnter(account: Account, folder: string): Promise<boolean> {
  return runsQuietly('/bin/sh', ['-c', 'cd "$1"', 'sh', folder], account);
}

/** Whether a program runs to its end with exit code 0, as that account if one is given. */
export function runsQuietly(
  program: string,
  args: readonly string[],
  account: Account | null,
): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: '/',
      stdio: 'ignore',
      ...(account && { uid: account.uid, gid: account.gid }),
    });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
