import type { Profile } from './profile.ts';

/** One thing that is measured: a file of bench/cases, which exports it as `bench` and gives it its name. */
export interface BenchCase {
  /** One line for the list of cases. */
  readonly about: string;
  run(context: CaseContext): Promise<CaseOutcome>;
}

/** What a case may use. It runs in a process of its own. */
export interface CaseContext {
  /** Only that it works is looked at: little data, two seconds at most. */
  readonly smoke: boolean;
  /** How long each thing is measured, in seconds, all rounds together. */
  readonly seconds: number;
  /** Afterwards the same is done again under a profiler. */
  readonly profile: boolean;
  /** The sizes of the command line, ascending; null: the case's own. */
  readonly sizes: readonly number[] | null;
  /** An empty database for this case alone. */
  readonly databaseUrl: string;
  /** A line of progress. */
  say(line: string): void;
}

export type CaseOutcome =
  | {
      readonly kind: 'measured';
      /** What the world holds, in words: `100 000 devices`. */
      readonly size: string;
      readonly rows: readonly Row[];
      /** What budgets are held against, by name; ratios wherever possible. */
      readonly figures: Readonly<Record<string, number>>;
      readonly notes?: readonly string[];
      /** How something grows with its size: drawn by the runner. */
      readonly curves?: readonly Curve[];
      readonly profiles?: readonly Profile[];
    }
  /** Something is missing on this machine, which is said aloud. */
  | { readonly kind: 'skipped'; readonly reason: string };

/** Microseconds of one call by the number of devices or areas. */
export interface Curve {
  readonly name: string;
  readonly points: readonly (readonly [size: number, us: number])[];
}

/** A line of the table. What is not there was not measured. */
export interface Row {
  readonly what: string;
  readonly perSecond?: number;
  /** What `perSecond` counts; requests when not given. */
  readonly unit?: string;
  readonly p50Ms?: number;
  readonly p975Ms?: number;
  readonly p99Ms?: number;
  readonly worstMs?: number;
  /** Processor time of the serving process for one of `unit`. */
  readonly cpuUs?: number;
  readonly rssMb?: number;
  /** Share of one processor that the serving process and the load generator used, 0 to 1 and more with threads. */
  readonly serverBusy?: number;
  readonly loadBusy?: number;
  /** For what happens once. */
  readonly seconds?: number;
}
