import { depot, INSIDE, latLng, OUTSIDE } from './places.ts';
import { RULES } from './rules.ts';
import { create, drive, entry, exit, patch, remove, type Trace, trace } from './trace.ts';

const minute = (sinceSeconds: number) => ({ sinceSeconds, dwellSeconds: 60 });
const create60 = create(depot({ dwell_seconds: 60 }));
const moveAway = patch('depot', { center: latLng(OUTSIDE) });

/** Areas that are made, changed and deleted while devices are in them. */
export const EDIT_TRACES: readonly Trace[] = [
  trace('an area that moves away is left at the next point', RULES.changed, {
    steps: [create(depot()), drive([0, INSIDE]), moveAway, drive([10, INSIDE], [20, INSIDE])],
    events: [entry(0, 'depot'), exit(10, 'depot', { sinceSeconds: 0 })],
  }),
  trace('an area that grows over a device is entered at the next point', RULES.changed, {
    steps: [
      create(depot()),
      drive([0, OUTSIDE]),
      patch('depot', { radius_m: 5_000 }),
      drive([10, OUTSIDE], [20, OUTSIDE]),
    ],
    events: [entry(10, 'depot')],
  }),
  trace('a change of name is shown by the events after it', RULES.nameThen, {
    steps: [
      create(depot()),
      drive([0, INSIDE]),
      patch('depot', { name: 'Depot Nord' }),
      drive([10, OUTSIDE]),
    ],
    events: [entry(0, 'depot'), exit(10, 'depot', { sinceSeconds: 0, areaName: 'Depot Nord' })],
  }),

  trace('a threshold that rises keeps the beginning of a pending stay', RULES.dwellChanged, {
    steps: [
      create60,
      drive([0, INSIDE]),
      patch('depot', { dwell_seconds: 300 }),
      drive([60, INSIDE], [299, INSIDE], [300, INSIDE]),
    ],
    events: [entry(300, 'depot', { sinceSeconds: 0, dwellSeconds: 300 })],
  }),
  trace('a threshold that falls completes a pending stay at the next point, not before', RULES.dwellChanged, {
    steps: [
      create(depot({ dwell_seconds: 300 })),
      drive([0, INSIDE], [100, INSIDE]),
      patch('depot', { dwell_seconds: 60 }),
      drive([110, INSIDE], [120, OUTSIDE]),
    ],
    events: [entry(110, 'depot', minute(0)), exit(120, 'depot', minute(0))],
  }),

  trace('a deleted area is not left', RULES.deleted, {
    steps: [create(depot()), drive([0, INSIDE]), remove('depot'), drive([10, INSIDE], [20, OUTSIDE])],
    events: [entry(0, 'depot')],
  }),
  trace('a new area around a parked device is entered at its next point', RULES.newArea, {
    steps: [drive([0, INSIDE], [60, INSIDE]), create(depot()), drive([70, INSIDE], [80, INSIDE])],
    events: [entry(70, 'depot')],
  }),
];
