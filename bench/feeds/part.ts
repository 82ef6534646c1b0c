import type { Row } from '../benchCase.ts';

/** What one part of the case has measured. */
export interface Part {
  readonly size: string;
  readonly rows: readonly Row[];
  readonly metrics: Readonly<Record<string, number>>;
}
