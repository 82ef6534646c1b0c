import type { Attack } from './attack.ts';
import { BACKTEST_ATTACKS } from './history/backtestAttack.ts';
import { EXPLAIN_ATTACKS } from './history/explainAttack.ts';
import { HISTORY_QUESTIONS } from './history/historyAttack.ts';
import { POINT_ATTACKS } from './pointAttacks.ts';
import { REQUEST_ATTACKS } from './requestAttacks.ts';
import { SHARED_ATTACKS } from './sharedAttacks.ts';
import { BUSY_STREAMS } from './streamAttack.ts';
import { UNREAD_WAITS } from './waitAttack.ts';

/** Every attack, in the order of the results. The index of an attack decides its IMEIs and addresses. */
export const ATTACKS: readonly Attack[] = [
  ...REQUEST_ATTACKS,
  ...POINT_ATTACKS,
  ...SHARED_ATTACKS,
  ...BACKTEST_ATTACKS,
  ...EXPLAIN_ATTACKS,
  HISTORY_QUESTIONS,
  BUSY_STREAMS,
  UNREAD_WAITS,
];
