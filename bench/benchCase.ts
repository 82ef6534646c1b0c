import type { Profile } from './measure/profile.ts';

/** A bench. The files below bench/cases export them; the name of the export is the name of the case. */
export interface BenchCase {
  readonly about: string;
  run(context: CaseContext): Promise<CaseOutcome>;
}

/** What a case gets. Each case runs in its own process. */
export interface CaseContext {
  /** Only shows that the case works: little data, two seconds at most. */
  readonly smoke: boolean;
  /** Seconds for each measurement, all rounds together. */
  readonly seconds: number;
  readonly profile: boolean;
  /** How many pods serve together, on one Postgres and Redis. Cases that do not say so have as many as they need. */
  readonly pods: 1 | 2;
  /** The sizes of the command line, ascending. Null: the case chooses. */
  readonly sizes: readonly number[] | null;
  readonly databaseUrl: string;
  say(line: string): void;
}

/** Skipped: the machine lacks something that the case needs. */
export type CaseOutcome = Measured | { readonly kind: 'skipped'; readonly reason: string };

export interface Measured extends Part {
  readonly kind: 'measured';
  /** The amount of data in words: `100 000 devices`. */
  readonly size: string;
  readonly notes?: readonly string[];
  readonly profiles?: readonly Profile[];
}

/** What a case, or a part of one, has measured. */
export interface Part {
  readonly rows: readonly Row[];
  /** Named results that budgets apply to. Ratios wherever possible. */
  readonly metrics: Readonly<Record<string, number>>;
  /** A/A noise of metrics that are medians of rounds, see noiseOf. */
  readonly noise?: Readonly<Record<string, number>>;
}

export interface Row {
  readonly what: string;
  readonly perSecond?: number;
  /** What `perSecond` counts. Default: requests. */
  readonly unit?: string;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly p999Ms?: number;
  readonly worstMs?: number;
  /** Processor time of the serving process for one `unit`. */
  readonly cpuUs?: number;
  readonly rssMb?: number;
  /** Share of one processor that the serving process and the load generator used. Above 1 with threads. */
  readonly serverBusy?: number;
  readonly loadBusy?: number;
  /** Encoded Latencies of calls that were due at a given rate. */
  readonly histogram?: string;
  readonly seconds?: number;
}
