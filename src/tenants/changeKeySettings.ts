import { randomBytes } from 'node:crypto';
import { fingerprint, newKey, prefix } from '../access/credentials.ts';
import type { KeyState } from '../access/keyring.memory.ts';
import { insertKey, revokeKey as updateRevoked } from '../access/keys.sql.ts';
import { type WritePorts, type WriteScope, writeWorlds } from '../changelog/writeWorlds.ts';
import { KEY_LIMITS, type KeySettings } from './keyBody.ts';
import { countUsableKeys, type KeyRecord, selectKey, updateKey } from './keySettings.sql.ts';

/** The account whose keys are managed. */
type Owner = Pick<KeyState, 'accountId' | 'worldIds'>;

/** A new key in clear text, which is shown this one time; undefined when the owner has as many as there may be. */
export async function createKey(
  ports: WritePorts,
  owner: Owner,
  settings: KeySettings,
): Promise<{ key: string; record: KeyRecord } | undefined> {
  const key = newKey(randomBytes);
  const record = await writeWorlds(ports, async (scope) => {
    if ((await countUsableKeys(scope.tx, owner.accountId)) >= KEY_LIMITS.perOwner) return undefined;
    const names = { fingerprint: fingerprint(key), prefix: prefix(key) };
    const id = await insertKey(scope.tx, owner.accountId, { ...settings, ...names });
    return recordKeyChange(scope, owner, await selectKey(scope.tx, owner.accountId, id));
  });
  return record && { key, record };
}

/** Undefined when the owner has no such key. When this returns, no pod decides by the old settings any more. */
export function changeKey(
  ports: WritePorts,
  owner: Owner,
  id: number,
  change: Partial<KeySettings>,
): Promise<KeyRecord | undefined> {
  return writeWorlds(ports, async (scope) =>
    recordKeyChange(scope, owner, await updateKey(scope.tx, owner.accountId, id, change)),
  );
}

/** Ends a key permanently. An already revoked key keeps its time. Undefined when the owner does not have the key. */
export function revokeKey(ports: WritePorts, owner: Owner, id: number): Promise<KeyRecord | undefined> {
  return writeWorlds(ports, async (scope) => {
    if ((await selectKey(scope.tx, owner.accountId, id)) === undefined) return undefined;
    await updateRevoked(scope.tx, id);
    return recordKeyChange(scope, owner, await selectKey(scope.tx, owner.accountId, id));
  });
}

/** Recorded even when nothing changes: repeating a revocation makes sure that every pod knows of it. */
function recordKeyChange(
  { changed }: WriteScope,
  owner: Owner,
  record: KeyRecord | undefined,
): KeyRecord | undefined {
  if (record !== undefined) {
    changed({ kind: 'key', worldId: owner.worldIds[0] as number, entityIds: [record.id] });
  }
  return record;
}
