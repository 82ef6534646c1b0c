import {
  isAcknowledged,
  isDoubtful,
  type Loss,
  type RecordedCall,
  type RunRecord,
  type Violation,
} from '../record.ts';

/** What a register is before its first write. */
export const UNSET = 'unset';

/** A value that a register has had, or may have had, from some time on. */
interface Setting {
  readonly value: string;
  readonly beginMs: number;
  /** It had taken effect by then; Infinity: nobody knows. */
  readonly heldByMs: number;
  readonly isAcknowledged: boolean;
}

const BEFORE: Setting = { value: UNSET, beginMs: -Infinity, heldByMs: -Infinity, isAcknowledged: false };

/**
 * The values that registers may have at a time: that of the last write acknowledged before, and those of writes which may
 * have taken effect since. While a write is under way pods may differ, and it is over only when it was acknowledged or its
 * value was seen.
 */
export class Registers {
  readonly #settings: ReadonlyMap<string, readonly Setting[]>;

  constructor(calls: readonly RecordedCall[]) {
    const seenAtMs = firstSightings(calls);
    const writes = calls.flatMap((call) => {
      if (call.kind !== 'write' || !(isAcknowledged(call) || isDoubtful(call))) return [];
      return call.sets.map((set) => ({ ...set, call }));
    });
    const byValue = Map.groupBy(writes, nameOf);
    this.#settings = new Map(
      [...Map.groupBy(writes, ({ register }) => register)].map(([register, sets]) => [
        register,
        sets.map((set): Setting => {
          const isUnique = byValue.get(nameOf(set))?.length === 1;
          const seenMs = isUnique ? seenAtMs.get(nameOf(set)) : undefined;
          return {
            value: set.value,
            beginMs: set.call.beginMs,
            heldByMs: isAcknowledged(set.call) ? set.call.endMs : (seenMs ?? Infinity),
            isAcknowledged: isAcknowledged(set.call),
          };
        }),
      ]),
    );
  }

  /** Values that a call between these times may show of it. */
  possible(register: string, beginMs: number, endMs: number): string[] {
    const settings = [BEFORE, ...(this.#settings.get(register) ?? [])];
    const overwrittenSinceMs = settings.reduce(
      (latest, setting) =>
        setting.isAcknowledged && setting.heldByMs <= beginMs ? Math.max(latest, setting.beginMs) : latest,
      Number.NEGATIVE_INFINITY,
    );
    const isPossible = (setting: Setting): boolean =>
      setting.beginMs < endMs && (overwrittenSinceMs === -Infinity || setting.heldByMs > overwrittenSinceMs);
    return settings.filter(isPossible).map(({ value }) => value);
  }
}

/** No poll is older than an acknowledged write; on a pod that has lost Postgres and Redis, than one before that. */
export function checkRegisters({ calls, processes, losses }: RunRecord, registers: Registers): Violation[] {
  return calls.flatMap((call) => {
    if (call.kind !== 'read') return [];
    const pod = processes.find(({ process }) => process === call.process)?.pod;
    const knownMs = pod === undefined ? call.beginMs : lastKnownMs(losses, pod, call);
    return call.finds.flatMap(({ register, value }): Violation[] => {
      const possible = registers.possible(register, knownMs, call.endMs);
      if (possible.includes(value)) return [];
      const times = `${Math.round(call.beginMs)} to ${Math.round(call.endMs)} ms`;
      return [
        {
          rule: 'an acknowledged write holds from the next call on',
          message:
            `${call.what} of process ${call.process}, ${times}: ${register} is ${value}, ` +
            `and may only be ${possible.join(' or ')}`,
        },
      ];
    });
  });
}

/** Memory of a pod is asked without a look at Postgres for this long. */
const FRESH_MS = 3_000;

/**
 * From when on what was acknowledged must hold for a call of a pod. A pod that cannot ask Postgres answers from memory unless
 * Redis knows of something newer, and Redis cannot tell when it is lost as well.
 */
function lastKnownMs(losses: readonly Loss[], pod: number, { beginMs, endMs }: Times): number {
  const ofPod = (of: Loss['of']): Loss[] =>
    losses.filter((loss) => loss.of === of && (loss.pod === null || loss.pod === pod));
  const overlaps = (loss: Loss, fromMs: number): boolean => loss.beginMs < endMs && loss.endMs >= fromMs;
  let lostAtMs = beginMs;
  // Losses that follow each other without a pause are one.
  for (const loss of ofPod('postgres').sort((a, b) => b.endMs - a.endMs))
    if (overlaps(loss, lostAtMs)) lostAtMs = Math.min(lostAtMs, loss.beginMs);
  const isPostgresLost = ofPod('postgres').some((loss) => overlaps(loss, beginMs));
  const isRedisLost = ofPod('redis').some((loss) => overlaps(loss, lostAtMs));
  return isPostgresLost && isRedisLost ? lostAtMs - FRESH_MS : beginMs;
}

type Times = Pick<RecordedCall, 'beginMs' | 'endMs'>;

const nameOf = ({ register, value }: { register: string; value: string }): string => `${register} = ${value}`;

/** When somebody first saw a value: a write of it had taken effect by then, answered or not. */
function firstSightings(calls: readonly RecordedCall[]): ReadonlyMap<string, number> {
  const seenAtMs = new Map<string, number>();
  for (const call of calls) {
    if (call.kind !== 'read') continue;
    for (const find of call.finds)
      seenAtMs.set(nameOf(find), Math.min(seenAtMs.get(nameOf(find)) ?? Infinity, call.endMs));
  }
  return seenAtMs;
}
