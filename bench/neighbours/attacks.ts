import type { Attack } from './attack.ts';
import { POINT_ATTACKS } from './pointAttacks.ts';
import { REQUEST_ATTACKS } from './requestAttacks.ts';
import { SHARED_ATTACKS } from './sharedAttacks.ts';

/** Every attack, in the order of the record. The place in here decides which IMEIs and addresses are an attack's own. */
export const ATTACKS: readonly Attack[] = [...REQUEST_ATTACKS, ...POINT_ATTACKS, ...SHARED_ATTACKS];
