import type { KeyState } from '../access/credentials.ts';
import { type WritePorts, type WriteScope, writeWorlds } from '../changelog/writeWorlds.ts';
import type { ShareDraft } from './share.ts';
import { endShare, insertShare, type ShareRecord } from './shares.sql.ts';

/** Makes a share of devices, by their ids. Undefined when the owner has as many that have not ended as it may. */
export function createShare(
  ports: WritePorts,
  owner: KeyState,
  draft: ShareDraft,
  deviceIds: readonly number[],
  fingerprint: string,
): Promise<ShareRecord | undefined> {
  return writeWorlds(ports, async (scope) => {
    const made = await insertShare(scope.tx, owner.accountId, draft, deviceIds, fingerprint);
    if (made !== undefined) recordShareChange(scope, owner, made.id);
    return made;
  });
}

/** Ends a share by hand. When this returns, it has ended on every pod. False when the owner has no such share. */
export function deleteShare(ports: WritePorts, owner: KeyState, id: number): Promise<boolean> {
  return writeWorlds(ports, async (scope) => {
    const hasEnded = await endShare(scope.tx, owner.accountId, id);
    if (hasEnded) recordShareChange(scope, owner, id);
    return hasEnded;
  });
}

function recordShareChange({ changed }: WriteScope, owner: KeyState, id: number): void {
  changed({ kind: 'share', worldId: owner.worldIds[0] as number, entityIds: [id] });
}
