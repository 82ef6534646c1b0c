import type { Shape } from './shape.ts';
import type { StoredArea } from './storedArea.ts';

/** An area in memory: what is stored, and its compiled shape. */
export interface Area extends StoredArea {
  readonly shape: Shape;
}
