import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Frees what nothing refers to, so that the memory in use can be compared before and after. */
export function collectGarbage(): void {
  collect();
}
