import { fail, ok, type Result } from '../lib/result.ts';

/**
 * What a key may be allowed to do, in the order of the API document; the ninth opens the webhook routes, the tenth
 * those of shares.
 */
export const SCOPES = [
  'read_devices',
  'read_locations',
  'read_history',
  'read_history_summary',
  'send_commands',
  'read_events',
  'read_areas',
  'write_areas',
  'manage_webhooks',
  'manage_shares',
] as const;

export type Scope = (typeof SCOPES)[number];

/** A set of scopes as bits, so that the check of a request is one `&`. Lives in memory only, never in a row. */
export type ScopeMask = number;

/** The mask of these scopes. */
export function scopeMask(...scopes: readonly Scope[]): ScopeMask {
  return scopes.reduce((mask, scope) => mask | (1 << SCOPES.indexOf(scope)), 0);
}

/** Opens what only sessions may do, such as managing keys. No scope, so no key can be granted it. */
export const SESSION_ONLY: ScopeMask = 1 << SCOPES.length;

/** Opens what needs no credentials at all: logging in. */
export const ANYBODY: ScopeMask = 1 << (SCOPES.length + 1);

/** In the mask of a caller: it may read only, whatever else is there. In that of a route: it is open to such callers. */
export const VIEWER: ScopeMask = 1 << (SCOPES.length + 2);

/** What opens a route that writes; the others open routes that read, whatever their method. */
export const WRITING: ScopeMask =
  scopeMask('send_commands', 'write_areas', 'manage_webhooks', 'manage_shares') | SESSION_ONLY;

/** Of the session of a member, or of a viewer. */
export function sessionScopes(isViewer: boolean): ScopeMask {
  return SESSION_ONLY | scopeMask(...SCOPES) | (isViewer ? VIEWER : 0);
}

/** The scopes that such a session reports; a viewer can also read what is opened by scopes that write. */
export function sessionRights(session: ScopeMask): { role: 'member' | 'viewer'; scopes: Scope[] } {
  return (session & VIEWER) === 0
    ? { role: 'member', scopes: scopeNames(session) }
    : { role: 'viewer', scopes: scopeNames(session & ~WRITING) };
}

/** Names to a mask; 'all' is every scope. The error lists the unknown names, in their order. */
export function parseScopes(names: readonly string[] | 'all'): Result<ScopeMask, readonly string[]> {
  if (names === 'all') return ok(scopeMask(...SCOPES));
  const unknown = names.filter((name) => !isScope(name));
  return unknown.length > 0 ? fail(unknown) : ok(scopeMask(...names.filter(isScope)));
}

/** True when `mask` holds at least one of the required scopes; nobody holds one of none. */
export function hasAny(mask: ScopeMask, required: ScopeMask): boolean {
  return (mask & required) !== 0;
}

/** The names in a mask, in the order of SCOPES. */
export function scopeNames(mask: ScopeMask): Scope[] {
  return SCOPES.filter((_, bit) => (mask & (1 << bit)) !== 0);
}

function isScope(name: string): name is Scope {
  return (SCOPES as readonly string[]).includes(name);
}
