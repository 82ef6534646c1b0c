import type { Names } from './verdict.ts';

/** What is to be explained, and to whom. */
export interface ExplainRequest {
  readonly accountId: number;
  /** Of the caller. */
  readonly worldIds: readonly number[];
  readonly areaId: number;
  readonly deviceId: number;
  readonly imei: string;
  readonly names: Omit<Names, 'areaCreatedAtMs' | 'toMs'>;
  /** Both included, cut to what the plan shows. */
  readonly fromMs: number;
  readonly toMs: number;
  /** The days that the plan shows, where it shows less than was asked for. */
  readonly trimmedToDays: number | null;
  readonly withSteps: boolean;
}
