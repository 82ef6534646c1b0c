import { depot, INSIDE, OUTSIDE } from './places.ts';
import { RULES } from './rules.ts';
import { batch, create, drive, entry, exit, point, type Trace, trace } from './trace.ts';

const minute = (sinceSeconds: number) => ({ sinceSeconds, dwellSeconds: 60 });
const create60 = create(depot({ dwell_seconds: 60 }));

/** One device, one area: entry, minimum stay, exit. */
export const STAY_TRACES: readonly Trace[] = [
  trace('without a threshold the first inside point is the entry', RULES.atOnce, {
    steps: [create(depot()), drive([0, OUTSIDE], [10, INSIDE])],
    events: [entry(10, 'depot')],
  }),
  trace('every visit has its entry and its exit', RULES.exitAfterEntry, {
    steps: [create(depot()), drive([0, INSIDE], [10, OUTSIDE], [20, OUTSIDE], [30, INSIDE], [45, OUTSIDE])],
    events: [
      entry(0, 'depot'),
      exit(10, 'depot', { sinceSeconds: 0 }),
      entry(30, 'depot'),
      exit(45, 'depot', { sinceSeconds: 30 }),
    ],
  }),

  trace('exactly the minimum stay is enough', RULES.noTimer, {
    steps: [create60, drive([0, INSIDE], [60, INSIDE])],
    events: [entry(60, 'depot', minute(0))],
  }),
  trace('a millisecond less than the minimum stay is not enough', RULES.noTimer, {
    steps: [create60, drive([0, INSIDE], [59.999, INSIDE])],
    events: [],
  }),
  trace('points that arrive all at once are evaluated by their own times', RULES.minimumStay, {
    steps: [
      create60,
      batch(point(0, OUTSIDE), point(10, INSIDE), point(69, INSIDE), point(70, INSIDE), point(80, OUTSIDE)),
    ],
    events: [entry(70, 'depot', minute(10)), exit(80, 'depot', minute(10))],
  }),

  trace('leaving early resets the count', RULES.reset, {
    steps: [
      create60,
      drive([0, INSIDE], [50, INSIDE], [55, OUTSIDE], [60, INSIDE], [119, INSIDE], [120, INSIDE]),
    ],
    events: [entry(120, 'depot', minute(60))],
  }),
  trace('a pass-through shorter than the minimum stay is nothing', RULES.passThrough, {
    steps: [create60, drive([0, OUTSIDE], [10, INSIDE], [40, INSIDE], [69, INSIDE], [70, OUTSIDE])],
    events: [],
  }),
  trace('a pass-through between two points is nothing', RULES.between, {
    steps: [create(depot()), drive([0, OUTSIDE], [60, [41.89, 12.5]], [120, OUTSIDE])],
    events: [],
  }),

  trace('the exit after a gap is that of the first point outside', RULES.firstOutside, {
    steps: [create(depot()), drive([0, INSIDE], [60, INSIDE], [86_461.25, OUTSIDE], [86_500, OUTSIDE])],
    events: [entry(0, 'depot'), exit(86_461.25, 'depot', { sinceSeconds: 0 })],
  }),
  trace('entry and exit have the positions of their own points', RULES.confirmingPoint, {
    steps: [create60, drive([0, [41.9001, 12.5]], [60, [41.8999, 12.5001]], [61, [41.92, 12.6]])],
    events: [entry(60, 'depot', minute(0)), exit(61, 'depot', minute(0))],
  }),
];
