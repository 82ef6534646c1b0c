/** What is read of an event of a Chromium trace. */
interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds. */
  readonly ts: number;
  readonly dur?: number;
  /** Of the processor, without waiting for one. */
  readonly tdur?: number;
}

export const TRACE_CATEGORIES = ['devtools.timeline', 'v8', 'blink.user_timing'];

const FRAME = 'FireAnimationFrame';
/** Where the browser hands over to scripts; garbage collection outside of them counts, too. */
const SCRIPTS = new Set([
  FRAME,
  'FunctionCall',
  'EvaluateScript',
  'RunMicrotasks',
  'TimerFire',
  'EventDispatch',
  'MinorGC',
  'MajorGC',
]);

/** A screen shows sixty frames a second. */
const FRAME_US = 1e6 / 60;

export interface ScriptTimes {
  /** Milliseconds of script for each sixtieth of a second in which there was any. */
  readonly frames: readonly number[];
  /** Frames that the browser really drew: without a graphics card they are few. */
  readonly drawn: number;
  /** Share of the time in which scripts ran. */
  readonly share: number;
}

/**
 * How long scripts take of the main thread, by a trace: all of the page, MapLibre included, in time of the processor. A
 * script counts for the frame in which it begins.
 */
export function scriptTimes(trace: Buffer): ScriptTimes {
  const { traceEvents } = JSON.parse(trace.toString('utf8')) as { traceEvents: readonly TraceEvent[] };
  const drawn = traceEvents.filter(({ name }) => name === FRAME);
  const thread = mostFrequent(drawn.map(({ pid, tid }) => `${pid} ${tid}`));
  const scripts = traceEvents
    .filter(({ name, ph, pid, tid }) => ph === 'X' && SCRIPTS.has(name) && `${pid} ${tid}` === thread)
    .sort((a, b) => a.ts - b.ts);
  const frames = new Map<number, number>();
  let endsAt = 0;
  let sumUs = 0;
  for (const { ts, dur = 0, tdur = dur } of scripts) {
    if (ts < endsAt) continue; // within another one, which was counted
    endsAt = ts + dur;
    sumUs += tdur;
    const frame = Math.floor(ts / FRAME_US);
    frames.set(frame, (frames.get(frame) ?? 0) + tdur / 1_000);
  }
  const wholeUs = endsAt - (scripts[0]?.ts ?? endsAt);
  return { frames: [...frames.values()], drawn: drawn.length, share: sumUs / wholeUs };
}

function mostFrequent(values: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}
