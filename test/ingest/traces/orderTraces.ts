import { circle, depot, FAR, INSIDE, OUTSIDE } from './places.ts';
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
  trace('points a millisecond apart are two', RULES.identity, {
    steps: [create(depot()), drive([10, INSIDE], [10.001, OUTSIDE])],
    events: [entry(10, 'depot'), exit(10.001, 'depot', { sinceSeconds: 10 })],
  }),
  trace('a batch in any order is evaluated in the order of time', RULES.timeOrder, {
    steps: [
      create60,
      batch(point(80, OUTSIDE), point(10, INSIDE), point(70, INSIDE), point(0, OUTSIDE), point(40, INSIDE)),
    ],
    events: [entry(70, 'depot', minute(10)), exit(80, 'depot', minute(10))],
  }),
  trace('devices have nothing to do with each other', RULES.minimumStay, {
    devices: { van: { owner: 'anna', shared: false }, car: { owner: 'anna', shared: false } },
    steps: [
      create60,
      drive(
        [0, INSIDE, 'van'],
        [30, INSIDE, 'car'],
        [60, OUTSIDE, 'van'],
        [89, INSIDE, 'car'],
        [90, INSIDE, 'car'],
      ),
    ],
    events: [entry(90, 'depot', { ...minute(30), device: 'car' })],
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
  trace('a stay completed and an entry at once come by area id', RULES.order, {
    steps: [
      create(circle('old', [41.9, 12.54], 400)),
      create({ ...east, dwell_seconds: 60 }),
      create(circle('new', [41.9, 12.54], 400)),
      drive([0, IN_EAST], [60, [41.9, 12.54]]),
    ],
    events: [entry(60, 'old'), entry(60, 'east', minute(0)), entry(60, 'new')],
  }),
  trace('a jump from area to area leaves one and enters the other', RULES.order, {
    steps: [
      create(circle('harbour', FAR, 500)),
      create(depot()),
      drive([0, INSIDE], [10, FAR], [20, INSIDE]),
    ],
    events: [
      entry(0, 'depot'),
      exit(10, 'depot', { sinceSeconds: 0 }),
      entry(10, 'harbour'),
      exit(20, 'harbour', { sinceSeconds: 10 }),
      entry(20, 'depot'),
    ],
  }),
];
