import { randomBytes } from 'node:crypto';
import type { KeyState } from '../access/credentials.ts';
import { fingerprint, newKey, prefix } from '../access/credentials.ts';
import {
  countUsableKeys,
  insertKey,
  type KeyRecord,
  selectKey,
  updateKey,
  revokeKey as updateRevoked,
} from '../access/keys.sql.ts';
import { type WritePorts, writeWorlds } from '../changelog/writeWorlds.ts';
import type { Tx } from '../postgres/sql.ts';
import { KEY_LIMITS, type KeySettings, type NewKeySettings } from './keyBody.ts';

/** A new key in clear text, which is shown this one time; undefined when the owner has as many as there may be. */
export async function createKey(
  ports: WritePorts,
  owner: KeyState,
  settings: NewKeySettings,
): Promise<{ key: string; record: KeyRecord } | undefined> {
  const key = newKey(randomBytes);
  const record = await writeKey(ports, owner, async (tx) => {
    if ((await countUsableKeys(tx, owner.accountId)) >= KEY_LIMITS.perOwner) return undefined;
    const names = { fingerprint: fingerprint(key), prefix: prefix(key) };
    const id = await insertKey(tx, owner.accountId, { ...settings, ...names });
    return selectKey(tx, owner.accountId, id);
  });
  return record && { key, record };
}

/** Undefined when the owner has no such key. When this returns, no pod decides by the old settings any more. */
export function changeKey(
  ports: WritePorts,
  owner: KeyState,
  id: number,
  change: Partial<KeySettings>,
): Promise<KeyRecord | undefined> {
  return writeKey(ports, owner, (tx) => updateKey(tx, owner.accountId, id, change));
}

/** Ends a key permanently. An already revoked key keeps its time. Undefined when the owner does not have the key. */
export function revokeKey(ports: WritePorts, owner: KeyState, id: number): Promise<KeyRecord | undefined> {
  return writeKey(ports, owner, async (tx) => {
    if ((await selectKey(tx, owner.accountId, id)) === undefined) return undefined;
    await updateRevoked(tx, id);
    return selectKey(tx, owner.accountId, id);
  });
}

/** Announces the key even when nothing changes: repeating a revocation makes sure that every pod knows of it. */
function writeKey(
  ports: WritePorts,
  owner: KeyState,
  write: (tx: Tx) => Promise<KeyRecord | undefined>,
): Promise<KeyRecord | undefined> {
  return writeWorlds(ports, async ({ tx, changed }) => {
    const record = await write(tx);
    if (record !== undefined) {
      changed({ kind: 'key', worldId: owner.worldIds[0] as number, entityIds: [record.id] });
    }
    return record;
  });
}
