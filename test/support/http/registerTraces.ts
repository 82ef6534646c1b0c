import { randomBytes } from 'node:crypto';
import { fingerprint, newKey, prefix } from '../../../src/access/credentials.ts';
import { insertKey } from '../../../src/access/keys.sql.ts';
import { insertDevices } from '../../../src/devices/devices.sql.ts';
import { openSql, type Tx } from '../../../src/postgres/sql.ts';
import { insertAccount, lockForNewTenants, upsertOrganization } from '../../../src/tenants/accounts.sql.ts';
import type { Trace } from '../../ingest/traces/trace.ts';

/** Who plays a story: its accounts and devices as the service knows them, shared with no other story. */
export interface Tenants {
  /** By the names of the story. */
  readonly emails: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
  readonly imeis: ReadonlyMap<string, string>;
  /** The organizations of the story are called after its number, as all stories use the same names. */
  organization(name: string): string;
}

const FIRST_IMEI = 350_000_000_000_000;
const SCOPES = ['read_areas', 'write_areas', 'read_events'];

/**
 * Makes accounts, keys and devices (each called what its story calls it) for all stories at once, before any pod
 * runs: no pod is notified.
 */
export async function registerTraces(databaseUrl: string, traces: readonly Trace[]): Promise<Tenants[]> {
  const sql = openSql(databaseUrl, { maxConnections: 1, name: 'test traces' });
  let devices = 0;
  const nextImei = (): string => String(FIRST_IMEI + devices++);
  try {
    return await sql.begin(async (tx) => {
      await lockForNewTenants(tx);
      const all: Tenants[] = [];
      for (const [n, trace] of traces.entries()) all.push(await registerTrace(tx, trace, n, nextImei));
      return all;
    });
  } finally {
    await sql.end();
  }
}

async function registerTrace(tx: Tx, trace: Trace, n: number, nextImei: () => string): Promise<Tenants> {
  const organization = (name: string): string => `${name} ${n}`;
  const emails = new Map<string, string>();
  const keys = new Map<string, string>();
  const worlds = new Map<string, { own: number; shared: number | undefined }>();
  for (const [name, home] of Object.entries(trace.accounts)) {
    const email = `${name}.${n}@example.com`;
    const found =
      home.organization === null ? undefined : await upsertOrganization(tx, organization(home.organization));
    const draft = { email, name, organizationId: found?.id ?? null, plan: 'pro', passwordHash: null };
    const { id, worldId } = await insertAccount(tx, draft);
    emails.set(name, email);
    keys.set(name, await makeKey(tx, id));
    worlds.set(name, { own: worldId, shared: found?.worldId });
  }
  const imeis = new Map(Object.keys(trace.devices).map((name) => [name, nextImei()]));
  const drafts = Object.entries(trace.devices).map(([name, { owner, shared }]) => {
    const worldId = worlds.get(owner)?.[shared ? 'shared' : 'own'];
    if (worldId === undefined) throw new Error(`the owner of ${name} cannot share it`);
    return { imei: imeis.get(name) as string, worldId, name, plate: null, model: null, groups: [] };
  });
  await insertDevices(tx, drafts);
  return { emails, keys, imeis, organization };
}

async function makeKey(tx: Tx, accountId: number): Promise<string> {
  const key = newKey(randomBytes);
  const names = { name: null, fingerprint: fingerprint(key), prefix: prefix(key) };
  await insertKey(tx, accountId, { ...names, scopes: SCOPES, allowlist: [] });
  return key;
}
