/**
 * In which order an overloaded pod refuses calls. `bulk`: lists, exports, batches and all
 * else that may take long; these go first. `poll`: short calls. Points, probes, metrics and pages are in neither class
 * and are never refused for this reason.
 */
export const SHED_CLASSES = ['bulk', 'poll'] as const;
export type ShedClass = (typeof SHED_CLASSES)[number];

/** How late calls of a class are where they begin to be refused, where more of them are, and where less. */
interface ShedLimits {
  readonly beginMs: number;
  readonly riseMs: number;
  readonly fallMs: number;
}

/** A healthy loop is late by a few milliseconds, and by 30 now and then. A batch of points needs some 30 turns of it. */
export const SHED_LIMITS: Readonly<Record<ShedClass, ShedLimits>> = {
  bulk: { beginMs: 100, riseMs: 50, fallMs: 20 },
  poll: { beginMs: 500, riseMs: 250, fallMs: 100 },
};

/** For how long a class has to be late without a break before it begins to be refused. */
export const STANDING_MS = 2_000;
/** The most that one reading counts for: a single long pause, such as that of a stopped process, is not overload. */
const LOOK_MAX_MS = 500;
/** From the first refused call of a class to all of them, and from all of them to none. */
const RISE_MS = 1_000;
const FALL_MS = 5_000;

/** What is refused of one class. */
interface ClassShed {
  /** From 0, nothing, to 1, all of it. */
  readonly share: number;
  /** For how long every look has found the loop later than `beginMs`. */
  readonly lateForMs: number;
}

export type Shedding = Readonly<Record<ShedClass, ClassShed>>;

const NOTHING: ClassShed = { share: 0, lateForMs: 0 };
export const NO_SHEDDING: Shedding = { bulk: NOTHING, poll: NOTHING };

/**
 * What is refused after a look that found the calls of a class, or the event loop, late by `lateMs`, `elapsedMs` after the look
 * before. Polls are refused only while all of bulk is, and bulk comes back only after all polls have.
 */
export function stepShedding(
  { bulk, poll }: Shedding,
  lateMs: Readonly<Record<ShedClass, number>>,
  elapsedMs: number,
): Shedding {
  const lookMs = Math.min(elapsedMs, LOOK_MAX_MS);
  return {
    bulk: poll.share > 0 ? bulk : stepClass(bulk, SHED_LIMITS.bulk, lateMs.bulk, lookMs),
    poll: bulk.share < 1 ? NOTHING : stepClass(poll, SHED_LIMITS.poll, lateMs.poll, lookMs),
  };
}

function stepClass({ share, lateForMs }: ClassShed, limits: ShedLimits, lateMs: number, lookMs: number) {
  const lateFor = lateMs > limits.beginMs ? lateForMs + lookMs : 0;
  return { share: stepShare(share, limits, lateMs, lookMs, lateFor), lateForMs: lateFor };
}

function stepShare(share: number, limits: ShedLimits, lateMs: number, lookMs: number, lateForMs: number) {
  if (share === 0 && lateForMs < STANDING_MS) return 0;
  if (lateMs > limits.riseMs) return Math.min(1, share + lookMs / RISE_MS);
  if (lateMs < limits.fallMs) return Math.max(0, share - lookMs / FALL_MS);
  return share;
}
