import { STEPS_PER_M } from './positionIndexLattice.ts';

// Chords in lattice steps, and the arcs over them on a sphere of the Earth's size.

const ARC_RADIUS = 6_371_000 * STEPS_PER_M;

/** The arc over a chord, in metres. */
export function arcM(chord: number): number {
  return ((2 * ARC_RADIUS) / STEPS_PER_M) * Math.asin(Math.min(1, chord / (2 * ARC_RADIUS)));
}

/** The chord below an arc; infinite when it says nothing. */
export function chordOfArc(lengthM: number): number {
  const halfAngle = (lengthM * STEPS_PER_M) / (2 * ARC_RADIUS);
  return halfAngle < Math.PI / 2 ? 2 * ARC_RADIUS * Math.sin(halfAngle) : Infinity;
}

/**
 * By how much, for each metre that one end of a geodesic is moved, its length changes at most more or less than the
 * arc over its chord does; infinite near the antipode, where that arc means nothing. For chords from 300 km on.
 *
 * The ellipsoid makes it 0.0055 tan² of half the angle up to 20°, and less beyond (0.0025 at 80°): found among 1.5
 * million pairs of positions, and doubled here.
 */
export function overArcSlope(chord: number): number {
  const sine = chord / (2 * ARC_RADIUS);
  return sine > MAX_SINE ? Infinity : (0.011 * sine * sine) / (1 - sine * sine);
}

/** Of 80°. */
const MAX_SINE = 0.985;
