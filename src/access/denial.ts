import type { ClientAddress } from './clientAddress.ts';
import type { KeyState } from './keyState.ts';

/** Codes of the API document: a known key that opens nothing for this call. */
export type KeyDenial = 'API_KEY_REVOKED' | 'API_KEY_OWNER_INACTIVE' | 'API_KEY_IP_BLOCKED';

/** The first reason to deny a call with a known key, in the fixed order; null when there is none. */
export function denialOf(
  key: KeyState,
  client: Pick<ClientAddress, 'address' | 'certain'>,
): KeyDenial | null {
  if (key.revoked) return 'API_KEY_REVOKED';
  if (!key.ownerActive) return 'API_KEY_OWNER_INACTIVE';
  if (key.allowlist.isEmpty) return null;
  return client.certain && key.allowlist.matches(client.address) ? null : 'API_KEY_IP_BLOCKED';
}
