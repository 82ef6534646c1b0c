import { randomBytes } from 'node:crypto';
import { ALLOWLIST_MAX_ENTRIES, parseAllowlist } from '../../access/allowlist.ts';
import { fingerprint, newKey, prefix } from '../../access/apiKey.ts';
import { insertKey } from '../../access/keys.sql.ts';
import { parseScopes, SCOPES, type Scope, scopeNames } from '../../access/scopes.ts';
import { type WriteScope, writeWorlds } from '../../changelog/writeWorlds.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { selectAccount } from '../../tenants/accounts.sql.ts';
import { type CommandOutcome, defineCommand, unknownAccount } from '../command.ts';
import { optional, required } from '../option.ts';
import { parseEmail, parseName } from '../optionParsers.ts';

export const keyCreate = defineCommand({
  name: 'key:create',
  summary: 'Makes an API key of an account and shows it, this one time.',
  options: {
    email: required('E', 'the address of the account', parseEmail),
    scopes: required('all|a,b', 'what it may do', readScopes),
    allow: optional('ip,cidr', 'where it may be used from; anywhere when not given', readAllowlist),
    name: optional('N', 'a name to know it by', parseName),
  },
  notes: [
    `Scopes: ${SCOPES.join(', ')}.`,
    `Allowed addresses: up to ${ALLOWLIST_MAX_ENTRIES} IPv4 addresses, IPv4 networks (10.0.0.0/8) and IPv6 addresses.`,
  ],
  run: (context, { email, ...draft }) =>
    context.withSession((session) => writeWorlds(session, (scope) => create(scope, email, draft))),
});

async function create(
  { tx, changed }: WriteScope,
  email: string,
  draft: { scopes: readonly Scope[]; allow: readonly string[] | undefined; name: string | undefined },
): Promise<CommandOutcome> {
  const account = await selectAccount(tx, email, 'share');
  if (account === undefined) return unknownAccount(email);
  const key = newKey(randomBytes);
  const id = await insertKey(tx, account.id, {
    name: draft.name ?? null,
    fingerprint: fingerprint(key),
    prefix: prefix(key),
    scopes: draft.scopes,
    allowlist: draft.allow ?? [],
  });
  changed({ kind: 'key', worldId: account.worldId, entityIds: [id] });
  return ok({ id, key, prefix: prefix(key), scopes: draft.scopes });
}

function readScopes(text: string): Result<readonly Scope[], string> {
  const names = splitList(text);
  if (names.length === 0) return fail('is empty');
  const mask = parseScopes(names.length === 1 && names[0] === 'all' ? 'all' : names);
  if (mask.ok) return ok(scopeNames(mask.value));
  return fail(`names no scope: ${mask.error.join(', ')}; it may be all, or some of ${SCOPES.join(', ')}`);
}

function readAllowlist(text: string): Result<readonly string[], string> {
  const entries = splitList(text);
  if (entries.length === 0) return fail('is empty; leave it out to allow every address');
  const parsed = parseAllowlist(entries);
  if (parsed.ok) return ok(entries);
  const errors = parsed.error.map((error) =>
    error.kind === 'too_many'
      ? `has ${error.count} entries, ${ALLOWLIST_MAX_ENTRIES} at most`
      : `has ${JSON.stringify(entries[error.index])}, which is no IPv4 address or network and no IPv6 address`,
  );
  return fail(errors.join('; '));
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}
