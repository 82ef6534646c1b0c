import { randomBytes } from 'node:crypto';
import { fingerprint, newKey, prefix } from '../../access/credentials.ts';
import { ALLOWLIST_MAX_ENTRIES, parseAllowlist } from '../../access/ipAddress.ts';
import { insertKey, type ListedKey, revokeKey, selectKeyPage } from '../../access/keys.sql.ts';
import { parseScopes, SCOPES, type Scope, scopeNames } from '../../access/scopes.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { systemClock } from '../../lib/time.ts';
import { selectAccount } from '../../tenants/accounts.sql.ts';
import { parseKeyEnd, parseKeyGroups } from '../../tenants/keyBody.ts';
import {
  defineCommand,
  type FleetCommand,
  optional,
  PAGE_ROWS,
  printPages,
  required,
  unknownAccount,
  withAccount,
  write,
} from '../command.ts';
import { parseEmail, parseId, parseName } from '../optionParsers.ts';

const create = defineCommand({
  name: 'key:create',
  summary: 'Creates an API key of an account and shows it, this one time.',
  options: {
    email: required('E', 'the address of the account', parseEmail),
    scopes: required('all|a,b', 'what it may do', readScopes),
    allow: optional('ip,cidr', 'where it may be used from; anywhere when not given', readAllowlist),
    name: optional('N', 'a name to know it by', parseName),
    groups: optional('a,b', 'it sees only devices of these groups; all when not given', readGroups),
    expires: optional('TIME', 'when it ends by itself (ISO 8601); never when not given', readEnd),
  },
  notes: [
    `Scopes: ${SCOPES.join(', ')}.`,
    `Allowed addresses: up to ${ALLOWLIST_MAX_ENTRIES} IPv4 addresses, IPv4 networks (10.0.0.0/8) and IPv6 addresses.`,
  ],
  run: (
    context,
    { email, scopes, allow: allowlist = [], name = null, groups = [], expires: expiresAt = null },
  ) =>
    write(context, async ({ tx, changed }) => {
      const account = await selectAccount(tx, email, 'share');
      if (account === undefined) return unknownAccount(email);
      const key = newKey(randomBytes);
      const names = { name, fingerprint: fingerprint(key), prefix: prefix(key) };
      const id = await insertKey(tx, account.id, { ...names, scopes, allowlist, expiresAt, groups });
      changed({ kind: 'key', worldId: account.worldId, entityIds: [id] });
      const ends = expiresAt && { expires_at: expiresAt.toISOString() };
      const seen = groups.length > 0 && { groups };
      return ok({ id, key, prefix: prefix(key), scopes, ...seen, ...ends });
    }),
});

const revoke = defineCommand({
  name: 'key:revoke',
  summary: 'Ends an API key permanently, from its next call on.',
  options: { id: required('N', 'the id that key:create printed', parseId) },
  notes: ['A key that was already revoked keeps its time of revocation.'],
  run: (context, { id }) =>
    write(context, async ({ tx, changed }) => {
      const key = await revokeKey(tx, id);
      if (key === undefined) return fail(`there is no key ${id}`);
      changed({ kind: 'key', worldId: key.worldId, entityIds: [id] });
      return ok({ id, revoked_at: key.revokedAt.toISOString() });
    }),
});

const list = defineCommand({
  name: 'key:list',
  summary: 'Prints every API key, revoked ones too, one JSON line each.',
  options: { email: optional('E', 'only those of this account', parseEmail) },
  notes: ['A key itself is not stored: only its first six characters can be shown (prefix).'],
  run: (context, { email }) =>
    withAccount(context, email, (sql, account) =>
      printPages(context, (last: ListedKey | null) =>
        selectKeyPage(sql, account?.id ?? null, last?.id ?? 0, PAGE_ROWS),
      ),
    ),
});

export const keyCommands: readonly FleetCommand[] = [create, revoke, list];

function readScopes(text: string): Result<readonly Scope[], string> {
  const names = splitList(text);
  if (names.length === 0) return fail('is empty');
  const mask = parseScopes(names.length === 1 && names[0] === 'all' ? 'all' : names);
  if (mask.ok) return ok(scopeNames(mask.value));
  return fail(`has unknown scopes: ${mask.error.join(', ')}; it may be all, or some of ${SCOPES.join(', ')}`);
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

function readGroups(text: string): Result<readonly string[], string> {
  const names = splitList(text);
  if (names.length === 0) return fail('is empty; leave it out to let the key see every device');
  const groups = parseKeyGroups(names);
  return groups.ok ? groups : fail(`is refused: ${groups.error.message}`);
}

function readEnd(text: string): Result<Date, string> {
  const end = parseKeyEnd(text, systemClock());
  return end.ok ? end : fail('is not an ISO 8601 time in the future, such as 2030-01-31T18:00:00Z');
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}
