import { circle, place, polygon, track } from './places.ts';
import { RULES } from './rules.ts';
import { create, drive, entry, exit, type Trace, trace } from './trace.ts';

const visit = (area: string) => [entry(10, area), exit(20, area, { sinceSeconds: 10 })];

/** The four kinds of area, and where the Earth is not flat. */
export const SHAPE_TRACES: readonly Trace[] = [
  trace('a circle ends at its radius', RULES.geodesic, {
    // A degree of latitude at 41.9° is 111 074 m.
    steps: [
      create(circle('circle', [41.9, 12.5], 1_000)),
      drive([0, [41.90901, 12.5]], [10, [41.90899, 12.5]], [20, [41.90901, 12.5]]),
    ],
    events: visit('circle'),
  }),
  trace('a place has 50 m when nothing else is said', RULES.place, {
    steps: [
      create(place('stop', [41.9, 12.5])),
      drive([0, [41.90046, 12.5]], [10, [41.90044, 12.5]], [20, [41.90046, 12.5]]),
    ],
    events: visit('stop'),
  }),
  trace('edges and corners of a polygon are inside', RULES.boundary, {
    steps: [
      create(
        polygon('square', [
          [41.75, 12.5],
          [41.75, 12.75],
          [42, 12.75],
          [42, 12.5],
        ]),
      ),
      drive(
        [0, [41.75, 12.25]],
        [10, [41.75, 12.5]],
        [12, [41.75, 12.625]],
        [14, [42, 12.75]],
        [20, [42.0001, 12.75]],
      ),
    ],
    events: visit('square'),
  }),
  trace('edges of a polygon follow the parallels, not the great circles', RULES.straightEdges, {
    // Over 20 degrees the great circle between the northern corners runs 48 km north of their parallel.
    steps: [
      create(
        polygon('belt', [
          [48, 0],
          [48, 20],
          [50, 20],
          [50, 0],
        ]),
      ),
      drive([0, [50.2, 10]], [10, [50, 10]], [15, [48, 10]], [20, [47.9, 10]]),
    ],
    events: visit('belt'),
  }),
  trace('a track reaches as far as its margin, around its ends too', RULES.margin, {
    steps: [
      create(
        track(
          'route',
          [
            [41.9, 12.5],
            [41.9, 12.6],
            [42, 12.6],
          ],
          { buffer_m: 100 },
        ),
      ),
      drive(
        [0, [41.90095, 12.55]],
        [10, [41.90085, 12.55]],
        [12, [41.9, 12.4989]],
        [14, [41.95, 12.6011]],
        [16, [42.0008, 12.6]],
        [20, [42.001, 12.6]],
      ),
    ],
    events: visit('route'),
  }),

  trace('a polygon over the antimeridian is one area on both sides', RULES.shortWay, {
    steps: [
      create(
        polygon('fiji', [
          [-19, 177],
          [-19, -178],
          [-16, -178],
          [-16, 177],
        ]),
      ),
      drive(
        [0, [-17, 176.9]],
        [10, [-17, 177.1]],
        [12, [-17, 180]],
        [14, [-17, -180]],
        [16, [-17, -178.1]],
        [20, [-17, -177.9]],
      ),
    ],
    events: visit('fiji'),
  }),
];
