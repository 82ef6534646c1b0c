import { circle, depot, INSIDE, OUTSIDE } from './places.ts';
import { RULES } from './rules.ts';
import { batch, create, drive, entry, exit, type Place, point, type Trace, trace } from './trace.ts';

const minute = (sinceSeconds: number) => ({ sinceSeconds, dwellSeconds: 60 });
const create60 = create(depot({ dwell_seconds: 60 }));

const BOTH: Place = [41.9, 12.52];
/** Two circles that share BOTH, and a place in each alone. */
const west = circle('west', [41.9, 12.51], 1_200);
const east = circle('east', [41.9, 12.53], 1_200);
const IN_WEST: Place = [41.9, 12.505];
const IN_EAST: Place = [41.9, 12.535];

/** Points out of order, points again, and several areas at one point. */
export const ORDER_TRACES: readonly Trace[] = [
  trace('a late point inside does not begin the stay earlier', RULES.late, {
    steps: [create60, drive([0, OUTSIDE], [100, INSIDE], [50, INSIDE], [120, INSIDE], [160, INSIDE])],
    events: [entry(160, 'depot', minute(100))],
  }),
  trace('a late point outside is no exit', RULES.late, {
    steps: [create(depot()), drive([0, INSIDE], [50, INSIDE], [25, OUTSIDE], [60, INSIDE], [70, OUTSIDE])],
    events: [entry(0, 'depot'), exit(70, 'depot', { sinceSeconds: 0 })],
  }),
  trace('another point of the same time changes nothing', RULES.identity, {
    steps: [create(depot()), drive([0, OUTSIDE], [10, INSIDE], [10, OUTSIDE], [20, INSIDE])],
    events: [entry(10, 'depot')],
  }),
  trace('of two points of the same time in one batch the first stands', RULES.identity, {
    steps: [create(depot()), batch(point(10, OUTSIDE), point(10, INSIDE), point(20, OUTSIDE))],
    events: [],
  }),
  trace('a batch in any order is evaluated in the order of time', RULES.timeOrder, {
    steps: [
      create60,
      batch(point(80, OUTSIDE), point(10, INSIDE), point(70, INSIDE), point(0, OUTSIDE), point(40, INSIDE)),
    ],
    events: [entry(70, 'depot', minute(10)), exit(80, 'depot', minute(10))],
  }),

  trace('entries at one point come by area id, not by name', RULES.order, {
    steps: [create(west), create(east), create(circle('above all', BOTH, 50)), drive([0, BOTH])],
    events: [entry(0, 'west'), entry(0, 'east'), entry(0, 'above all')],
  }),
  trace('exits at one point come by area id, whatever the order of the entries', RULES.order, {
    steps: [create(west), create(east), drive([0, IN_EAST], [10, BOTH], [20, OUTSIDE])],
    events: [
      entry(0, 'east'),
      entry(10, 'west'),
      exit(20, 'west', { sinceSeconds: 10 }),
      exit(20, 'east', { sinceSeconds: 0 }),
    ],
  }),
  trace('an exit comes before an entry at the same point, also when its area is younger', RULES.order, {
    steps: [create(west), create(east), drive([0, IN_EAST], [10, IN_WEST])],
    events: [entry(0, 'east'), exit(10, 'east', { sinceSeconds: 0 }), entry(10, 'west')],
  }),
];
