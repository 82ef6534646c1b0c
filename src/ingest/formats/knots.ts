/** One knot is one nautical mile (1852 m) an hour. */
export const KMH_PER_KNOT = 1.852;
