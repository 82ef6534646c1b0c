import type { Attack } from './attack.ts';
import { BACKTESTS } from './backtestAttack.ts';
import { EXPLANATIONS } from './explainAttack.ts';
import { HISTORY_QUESTIONS } from './historyAttack.ts';
import { POINT_ATTACKS } from './pointAttacks.ts';
import { REQUEST_ATTACKS } from './requestAttacks.ts';
import { SHARED_ATTACKS } from './sharedAttacks.ts';
import { BUSY_STREAMS } from './streamAttack.ts';

/** Every attack, in the order of the results. The index of an attack decides its IMEIs and addresses. */
export const ATTACKS: readonly Attack[] = [
  ...REQUEST_ATTACKS,
  ...POINT_ATTACKS,
  ...SHARED_ATTACKS,
  BACKTESTS,
  EXPLANATIONS,
  HISTORY_QUESTIONS,
  BUSY_STREAMS,
];
