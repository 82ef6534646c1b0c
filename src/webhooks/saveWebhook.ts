import type { KeyObject } from 'node:crypto';
import type { KeyState } from '../access/credentials.ts';
import { type WritePorts, type WriteScope, writeWorlds } from '../changelog/writeWorlds.ts';
import { newSecret, seal } from './delivery.ts';
import { ENDPOINT_LIMITS, type EndpointChange, type EndpointDraft, type Webhook } from './endpoint.ts';
import { endLeftOut, endPause } from './pauses/pauses.sql.ts';
import type { Wake } from './replayDeliveries.ts';
import { deleteWebhook, insertWebhook, rotateSecret, selectWebhook, updateWebhook } from './webhooks.sql.ts';

/** How long a replaced secret continues to sign beside the new one. */
const SECRET_OVERLAP_HOURS = 24;

/** An endpoint with its signing secret in clear text, which is shown this one time. */
export interface WebhookWithSecret {
  readonly webhook: Webhook;
  readonly secret: string;
}

/** Undefined when the owner has as many endpoints as allowed. Nothing is sent to the url. */
export async function createWebhook(
  write: WritePorts,
  secretsKey: KeyObject,
  owner: KeyState,
  draft: EndpointDraft,
): Promise<WebhookWithSecret | undefined> {
  const secret = newSecret();
  const webhook = await writeWorlds(write, async (scope) => {
    const sealed = seal(secretsKey, secret);
    const made = await insertWebhook(scope.tx, owner.accountId, draft, sealed, ENDPOINT_LIMITS.perOwner);
    if (made !== undefined) recordWebhookChange(scope, owner, made.id);
    return made;
  });
  return webhook && { webhook, secret };
}

/**
 * Undefined when the owner has no such endpoint. Deliveries that wait are sent by the new settings. Activation ends a pause.
 */
export async function changeWebhook(
  write: WritePorts,
  wake: Wake,
  owner: KeyState,
  id: number,
  change: EndpointChange,
): Promise<Webhook | undefined> {
  const webhook = await writeWorlds(write, async (scope) => {
    if (change.active === true) await endPause(scope.tx, owner.accountId, id, null);
    const updated = await updateWebhook(scope.tx, owner.accountId, id, change);
    if (updated?.active === false) await endLeftOut(scope.tx, id);
    if (updated !== undefined) recordWebhookChange(scope, owner, id);
    return updated;
  });
  // Deliveries that waited while the endpoint was inactive may be due.
  if (webhook?.active === true) wake([id]);
  return webhook;
}

/**
 * Ends the pause of an endpoint. The deliveries that were left out are made from `fromMs` on, from the first when it is
 * null. Undefined when the owner has no such endpoint; nothing changes when it is not paused.
 */
export async function resumeWebhook(
  write: WritePorts,
  owner: KeyState,
  id: number,
  fromMs: number | null,
): Promise<Webhook | undefined> {
  return writeWorlds(write, async (scope) => {
    if (await endPause(scope.tx, owner.accountId, id, fromMs)) recordWebhookChange(scope, owner, id);
    return selectWebhook(scope.tx, owner.accountId, id);
  });
}

/** Removes an endpoint and its deliveries. False when the owner has no such endpoint. */
export function removeWebhook(write: WritePorts, owner: KeyState, id: number): Promise<boolean> {
  return writeWorlds(write, async (scope) => {
    const isDeleted = await deleteWebhook(scope.tx, owner.accountId, id);
    if (isDeleted) recordWebhookChange(scope, owner, id);
    return isDeleted;
  });
}

/** Replaces the signing secret; the old one also signs for a day. Undefined when the owner has no such endpoint. */
export async function rotateWebhookSecret(
  write: WritePorts,
  secretsKey: KeyObject,
  owner: KeyState,
  id: number,
): Promise<WebhookWithSecret | undefined> {
  const secret = newSecret();
  const webhook = await write.sql.begin((tx) =>
    rotateSecret(tx, owner.accountId, id, seal(secretsKey, secret), SECRET_OVERLAP_HOURS),
  );
  return webhook && { webhook, secret };
}

function recordWebhookChange({ changed }: WriteScope, owner: KeyState, id: number): void {
  changed({ kind: 'webhook', worldId: owner.worldIds[0] as number, entityIds: [id] });
}
