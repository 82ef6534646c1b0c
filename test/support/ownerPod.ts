import { after, before } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { type Pod, type PodOptions, startPod } from './pod.ts';
import { type Admin, adminOf } from './postgres/admin.ts';
import { createDatabase } from './postgres/postgres.ts';

export const OWNER = 'owner@example.com';

/** A pod on a database of its own, with one account. All of it is there when the first test runs. */
export interface OwnerPod {
  readonly pod: Pod;
  readonly admin: Admin;
  readonly url: string;
  readonly sql: Sql;
  /** Of the account; it opens everything unless `scopes` say otherwise. */
  readonly key: string;
}

export interface OwnerPodOptions extends Omit<PodOptions, 't'> {
  readonly scopes?: string;
  /** Devices of the account, as lines of a file of devices. */
  readonly devices?: readonly object[];
  /** What else is there before the pod starts. */
  readonly prepare?: (owner: Omit<OwnerPod, 'pod'>) => Promise<void>;
}

/**
 * Starts a pod for the tests of the file or suite that calls this, sets up what they need, and stops it after them. At
 * the top of a file a hook of its own would not wait for the pod.
 */
export function ownerPod(
  { scopes, devices, prepare, ...options }: OwnerPodOptions = {},
  setUp: (owner: OwnerPod) => Promise<unknown> = async () => undefined,
): OwnerPod {
  const owner = { pod: {}, admin: {} } as OwnerPod;
  before(async () => {
    const { url } = await createDatabase();
    const admin = Object.assign(owner.admin, adminOf(url));
    await admin.account(OWNER);
    const { key } = await admin.key(OWNER, scopes === undefined ? {} : { scopes });
    Object.assign(owner, { url, key, sql: openSql(url, { maxConnections: 4, name: 'test' }) });
    if (devices !== undefined) await admin.importDevices(OWNER, devices);
    await prepare?.(owner);
    Object.assign(owner.pod, await startPod(url, options));
    await setUp(owner);
  });
  after(async () => {
    await owner.sql?.end();
    await owner.pod.stop?.();
  });
  return owner;
}
