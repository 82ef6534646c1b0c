import type { Attack } from './attack.ts';
import { BUSY_STREAMS, UNREAD_WAITS } from './feedAttacks.ts';
import { HISTORY_ATTACKS } from './historyAttacks.ts';
import { LIVING_ATTACKS } from './livingAttacks.ts';
import { POINT_ATTACKS } from './pointAttacks.ts';
import { REQUEST_ATTACKS } from './requestAttacks.ts';
import { SHARED_ATTACKS } from './sharedAttacks.ts';

/** Every attack, in the order of the results. The index of an attack decides its IMEIs and addresses. */
export const ATTACKS: readonly Attack[] = [
  ...REQUEST_ATTACKS,
  ...POINT_ATTACKS,
  ...SHARED_ATTACKS,
  ...HISTORY_ATTACKS,
  ...LIVING_ATTACKS,
  BUSY_STREAMS,
  UNREAD_WAITS,
];
