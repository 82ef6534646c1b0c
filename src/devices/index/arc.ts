import { STEPS_PER_M } from './lattice.ts';

// Chords in lattice steps, and the arcs over them on a sphere of about the Earth's size.

const ARC_RADIUS = 6_371_000 * STEPS_PER_M;

/** The arc over a chord, in metres. */
export function arcM(chord: number): number {
  return ((2 * ARC_RADIUS) / STEPS_PER_M) * Math.asin(Math.min(1, chord / (2 * ARC_RADIUS)));
}

/** The chord of an arc; infinite for an arc of half the circumference or more. */
export function chordOfArc(lengthM: number): number {
  const halfAngle = (lengthM * STEPS_PER_M) / (2 * ARC_RADIUS);
  return halfAngle < Math.PI / 2 ? 2 * ARC_RADIUS * Math.sin(halfAngle) : Infinity;
}

/**
 * How fast the excess of a geodesic over the arc of its chord can change: the most metres for each metre by which one
 * end is moved. Infinite near the antipode, where that arc means nothing. For chords from 300 km on.
 *
 * On the ellipsoid it is 0.0055 tan² of half the angle up to 20°, and less beyond (0.0025 at 80°), measured on 1.5
 * million pairs of positions. Here it is doubled.
 */
export function arcExcessSlope(chord: number): number {
  const sine = chord / (2 * ARC_RADIUS);
  return sine > MAX_SINE ? Infinity : (0.011 * sine * sine) / (1 - sine * sine);
}

/** The sine of 80°. */
const MAX_SINE = 0.985;
