import { parentPort, workerData } from 'node:worker_threads';
import { invariant } from '../../lib/errors.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { AreaGeometry } from '../area.ts';
import { type Outline, outlineOf, overlapM2 } from './overlap.ts';

/** What a thread that measures overlaps is started with. */
export interface ThreadData {
  /** Processor time that one call may take. */
  readonly limitMs: number;
  /** The call whose step is running, 0 for none, and the number of steps so far: what is left when the thread ends. */
  readonly progress: Int32Array;
}

export interface OtherArea {
  readonly id: number;
  /** Its index among all others of the call. */
  readonly index: number;
  readonly geometry: AreaGeometry;
}

/** What the thread is told. A call begins, then others come, in parts that the thread asks for. */
export type ThreadTask = { readonly call: number } & (
  | { readonly kind: 'begin'; readonly accountId: number; readonly geometry: AreaGeometry }
  | { readonly kind: 'others'; readonly others: readonly OtherArea[]; readonly isLast: boolean }
  | { readonly kind: 'forget' }
);

/** What the thread answers. */
export type ThreadReply = { readonly call: number } & (
  | { readonly kind: 'wanted' }
  /** `overlaps` has three numbers for each, largest first: the index of the other area, m² in common, m² of the other. */
  | { readonly kind: 'measured'; readonly ownM2: number; readonly overlaps: Float64Array }
  /** The index of the other area that took longest, or null: most time went into the area itself. */
  | { readonly kind: 'too_complex'; readonly longest: number | null }
  | { readonly kind: 'failed'; readonly error: string }
);

/** A smaller share of both areas is rounding along a common boundary, not a common interior. */
const LEAST_SHARE = 1e-9;
const [ID, INDEX, COMMON_M2, OTHER_M2, FOUND_FIELDS] = [0, 1, 2, 3, 4] as const;
/** How long one account measures before the next one does. */
const QUANTUM_MS = 1;
/** How long the thread measures before it looks at what it is told. */
const TURN_MS = 5;

interface Work {
  readonly call: number;
  readonly account: Account;
  readonly geometry: AreaGeometry;
  own: Outline | null;
  /** What is to be measured of the others that are here; null while the next ones are on their way. */
  steps: Steps<void> | null;
  isLast: boolean;
  /** FOUND_FIELDS numbers for each overlap: numbers in a row take a third of the memory of objects. */
  readonly found: number[];
  usedMs: number;
  /** The index of the other area that is measured; null for the area itself. */
  at: number | null;
  usedAtMs: number;
  longest: { index: number | null; usedMs: number };
}

interface Account {
  readonly id: number;
  /** Processor time, counted from that of the account which had the least when this one came. */
  usedMs: number;
  readonly works: Set<Work>;
}

const { limitMs, progress } = workerData as ThreadData;
const accounts = new Map<number, Account>();
const works = new Map<number, Work>();
let isScheduled = false;

invariant(parentPort !== null, 'this file is the entry of a thread');
const port = parentPort;
port.on('message', (task: ThreadTask) => {
  hear(task);
  schedule();
});

function hear(task: ThreadTask): void {
  switch (task.kind) {
    case 'begin': {
      const { call, geometry } = task;
      const account = accountOf(task.accountId);
      const begun = { own: null, steps: null, isLast: false, found: [], usedMs: 0, at: null, usedAtMs: 0 };
      const work: Work = { call, account, geometry, ...begun, longest: { index: null, usedMs: 0 } };
      works.set(call, work);
      account.works.add(work);
      return;
    }
    case 'others': {
      const work = works.get(task.call);
      if (work === undefined) return;
      work.steps = measure(work, task.others);
      work.isLast = task.isLast;
      return;
    }
    case 'forget':
      forget(works.get(task.call));
  }
}

function accountOf(id: number): Account {
  const known = accounts.get(id);
  if (known !== undefined) return known;
  const least = Math.min(...Array.from(accounts.values(), ({ usedMs }) => usedMs));
  const account = { id, usedMs: accounts.size === 0 ? 0 : least, works: new Set<Work>() };
  accounts.set(id, account);
  return account;
}

function forget(work: Work | undefined): void {
  if (work === undefined) return;
  works.delete(work.call);
  work.account.works.delete(work);
  if (work.account.works.size === 0) accounts.delete(work.account.id);
}

function schedule(): void {
  if (isScheduled || next() === undefined) return;
  isScheduled = true;
  setImmediate(() => {
    isScheduled = false;
    const endMs = performance.now() + TURN_MS;
    do {
      const work = next();
      if (work === undefined) return;
      run(work);
    } while (performance.now() < endMs);
    schedule();
  });
}

/** Work of the account that has used the least: many short steps of one account make up for a long one of another. */
function next(): Work | undefined {
  let chosen: Work | undefined;
  for (const work of works.values()) {
    if (work.steps === null) continue;
    if (chosen === undefined || work.account.usedMs < chosen.account.usedMs) chosen = work;
  }
  return chosen;
}

function run(work: Work): void {
  progress[0] = work.call;
  const before = process.threadCpuUsage();
  try {
    const isDone = runSteps(work.steps as Steps<void>);
    charge(work, before);
    if (isDone) finishPart(work);
    else if (work.usedMs > limitMs) {
      end(work, { kind: 'too_complex', call: work.call, longest: work.longest.index });
    } else {
      // The other works of this account come before it next time.
      works.delete(work.call);
      works.set(work.call, work);
    }
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    end(work, { kind: 'failed', call: work.call, error: text });
  }
  progress[0] = 0;
}

/** True when it was the last. */
function runSteps(steps: Steps<void>): boolean {
  const endMs = performance.now() + QUANTUM_MS;
  do {
    progress[1] = (progress[1] as number) + 1;
    if (steps.next().done === true) return true;
  } while (performance.now() < endMs);
  return false;
}

function charge(work: Work, before: NodeJS.CpuUsage): void {
  const { user, system } = process.threadCpuUsage(before);
  const usedMs = (user + system) / 1_000;
  work.account.usedMs += usedMs;
  work.usedMs += usedMs;
  work.usedAtMs += usedMs;
  if (work.usedAtMs > work.longest.usedMs) work.longest = { index: work.at, usedMs: work.usedAtMs };
}

function finishPart(work: Work): void {
  const { call, own, found } = work;
  work.steps = null;
  if (work.isLast)
    end(work, { kind: 'measured', call, ownM2: own?.areaM2 ?? 0, overlaps: largestFirst(found) });
  else port.postMessage({ kind: 'wanted', call } satisfies ThreadReply);
}

/** The index of the other area, m² in common and m² of the other, for each. */
function largestFirst(found: readonly number[]): Float64Array {
  const order = Uint32Array.from({ length: found.length / FOUND_FIELDS }, (_, n) => n * FOUND_FIELDS);
  order.sort((a, b) => found[b + COMMON_M2]! - found[a + COMMON_M2]! || found[a + ID]! - found[b + ID]!);
  const overlaps = new Float64Array(3 * order.length);
  for (const [n, at] of order.entries()) {
    overlaps.set([found[at + INDEX]!, found[at + COMMON_M2]!, found[at + OTHER_M2]!], 3 * n);
  }
  return overlaps;
}

function end(work: Work, reply: ThreadReply): void {
  forget(work);
  port.postMessage(reply);
}

function* measure(work: Work, others: readonly OtherArea[]): Steps<void> {
  work.own ??= yield* outlineOf(work.geometry);
  for (const { id, index, geometry } of others) {
    work.at = index;
    work.usedAtMs = 0;
    const outline = yield* outlineOf(geometry);
    const commonM2 = yield* overlapM2(work.own, outline);
    if (Math.max(commonM2 / work.own.areaM2, commonM2 / outline.areaM2) > LEAST_SHARE) {
      work.found.push(id, index, commonM2, outline.areaM2);
    }
    yield;
  }
}
