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
  /** How a time grows with the size of the data. The runner draws them. */
  readonly curves?: readonly Curve[];
  readonly profiles?: readonly Profile[];
}

/** What a case, or a part of one, has measured. */
export interface Part {
  readonly rows: readonly Row[];
  /** Named results that budgets apply to. Ratios wherever possible. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Microseconds of one call by the number of devices or areas. */
export interface Curve {
  readonly name: string;
  readonly points: readonly (readonly [size: number, us: number])[];
}

export interface Row {
  readonly what: string;
  readonly perSecond?: number;
  /** What `perSecond` counts. Default: requests. */
  readonly unit?: string;
  readonly p50Ms?: number;
  readonly p975Ms?: number;
  readonly p99Ms?: number;
  readonly worstMs?: number;
  /** Processor time of the serving process for one `unit`. */
  readonly cpuUs?: number;
  readonly rssMb?: number;
  /** Share of one processor that the serving process and the load generator used. Above 1 with threads. */
  readonly serverBusy?: number;
  readonly loadBusy?: number;
  readonly seconds?: number;
}
