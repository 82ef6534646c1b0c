import type { AreaDefinition } from './area.ts';
import type { AreaMeasures } from './areaMeasures.ts';

/** An area as Postgres holds it. */
export interface StoredArea {
  readonly id: number;
  readonly worldId: number;
  /** Who made it: the namespace of its external id. */
  readonly accountId: number;
  readonly definition: AreaDefinition;
  readonly measures: AreaMeasures;
  readonly createdAtMs: number;
  /** Rises with every write. */
  readonly revision: number;
}
