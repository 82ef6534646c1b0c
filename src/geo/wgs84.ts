/** The WGS84 ellipsoid (NGA.STND.0036, table 3.1): defining axis and flattening; the polar radius follows from them. */
export const EQUATORIAL_RADIUS_M = 6378137;
export const FLATTENING = 1 / 298.257223563;
export const POLAR_RADIUS_M = EQUATORIAL_RADIUS_M * (1 - FLATTENING);

export const RADIANS_PER_DEGREE = Math.PI / 180;
