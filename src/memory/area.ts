import type { Shape } from '../areas/shape.ts';
import type { StoredArea } from '../areas/storedArea.ts';

/** An area in memory: what is stored, and its compiled shape. */
export interface Area extends StoredArea {
  readonly shape: Shape;
}
