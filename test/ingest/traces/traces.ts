import { EDIT_TRACES } from './editTraces.ts';
import { ORDER_TRACES } from './orderTraces.ts';
import { SHAPE_TRACES } from './shapeTraces.ts';
import { STAY_TRACES } from './stayTraces.ts';
import { TENANCY_TRACES } from './tenancyTraces.ts';
import type { Trace } from './trace.ts';

/** Every story of the geofence engine. */
export const TRACES: readonly Trace[] = [
  ...STAY_TRACES,
  ...ORDER_TRACES,
  ...EDIT_TRACES,
  ...SHAPE_TRACES,
  ...TENANCY_TRACES,
];
