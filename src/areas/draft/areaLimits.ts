/** The bounds of an area's fields, as in the tables Area and Limits of the API document. */
export const AREA_LIMITS = {
  nameMaxCodePoints: 100,
  circleMinRadiusM: 25,
  maxRadiusM: 100_000,
  defaultPlaceRadiusM: 50,
  minBufferM: 5,
  maxBufferM: 5_000,
  defaultBufferM: 50,
  polygonMinPoints: 3,
  polylineMinPoints: 2,
  maxPoints: 2_000,
  maxDwellSeconds: 86_400,
} as const;

export const DEFAULT_COLOR = '#3b82f6';
