import { circle, depot, INSIDE, OUTSIDE } from './places.ts';
import { RULES } from './rules.ts';
import { create, drive, entry, exit, join, share, type Trace, trace, unshare } from './trace.ts';

const member = { organization: 'acme' };
const accounts = { anna: member, ben: member, carl: { organization: null } };
const shared = { van: { owner: 'anna', shared: true } };
const ofBen = { van: { owner: 'ben', shared: false } };
const there = drive([0, INSIDE], [10, OUTSIDE]);
const visit = (area: string, ...readBy: string[]) => [
  entry(0, area, { readBy }),
  exit(10, area, { readBy, sinceSeconds: 0 }),
];

/** Who watches whom, and who reads what: anna and ben in one organization, carl in none. */
export const TENANCY_TRACES: readonly Trace[] = [
  trace('the area of a stranger sees nothing', RULES.watches, {
    accounts,
    steps: [create(depot(), 'carl'), there],
    events: [],
  }),
  trace('a private area of one member does not see the private device of another', RULES.privateArea, {
    accounts,
    devices: ofBen,
    steps: [create(depot()), there],
    events: [],
  }),
  trace('a private area sees a shared device, and its owner alone reads it', RULES.privateArea, {
    accounts,
    devices: shared,
    steps: [create(depot(), 'ben'), there],
    events: visit('depot', 'ben'),
  }),
  trace('a shared area sees the private device of every member, who alone reads it', RULES.sharedArea, {
    accounts,
    devices: ofBen,
    steps: [create(depot()), share('depot'), there],
    events: visit('depot', 'ben'),
  }),
  trace('a shared area and a shared device are everybody’s in the organization', RULES.readers, {
    accounts,
    devices: shared,
    steps: [create(depot()), share('depot'), there],
    events: visit('depot', 'anna', 'ben'),
  }),
  trace('a shared area does not see the device of a stranger', RULES.sharedArea, {
    accounts,
    devices: { van: { owner: 'carl', shared: false } },
    steps: [create(depot()), share('depot'), there],
    events: [],
  }),
  trace('one point of a shared device makes an event of its own for each owner of an area', RULES.readers, {
    accounts,
    devices: shared,
    steps: [
      create(circle('of ben', INSIDE, 300), 'ben'),
      create(circle('of all', INSIDE, 300)),
      share('of all'),
      create(circle('of anna', INSIDE, 300)),
      create(circle('of carl', INSIDE, 300), 'carl'),
      drive([0, INSIDE]),
    ],
    events: [
      entry(0, 'of ben', { readBy: ['ben'] }),
      entry(0, 'of all', { readBy: ['anna', 'ben'] }),
      entry(0, 'of anna'),
    ],
  }),
  trace('an area that is shared is new to the others and goes on for its account', RULES.sharedArea, {
    accounts,
    devices: { van: { owner: 'anna', shared: false }, car: { owner: 'ben', shared: false } },
    steps: [
      create(depot()),
      drive([0, INSIDE, 'van'], [1, INSIDE, 'car']),
      share('depot'),
      drive([10, INSIDE, 'van'], [11, INSIDE, 'car'], [20, OUTSIDE, 'van'], [21, OUTSIDE, 'car']),
    ],
    events: [
      entry(0, 'depot'),
      entry(11, 'depot', { device: 'car', readBy: ['ben'] }),
      exit(20, 'depot', { sinceSeconds: 0 }),
      exit(21, 'depot', { device: 'car', readBy: ['ben'], sinceSeconds: 11 }),
    ],
  }),
  trace('an area that is private again loses sight of the others without an exit', RULES.watches, {
    accounts,
    devices: ofBen,
    steps: [
      create(depot()),
      share('depot'),
      drive([0, INSIDE]),
      unshare('depot'),
      drive([10, INSIDE], [20, OUTSIDE]),
    ],
    events: [entry(0, 'depot', { readBy: ['ben'] })],
  }),
  trace('a stay of a shared device outlasts the change from shared to private area', RULES.readers, {
    accounts,
    devices: shared,
    steps: [create(depot()), share('depot'), drive([0, INSIDE]), unshare('depot'), drive([10, OUTSIDE])],
    events: [
      entry(0, 'depot', { readBy: ['anna', 'ben'] }),
      exit(10, 'depot', { readBy: ['anna'], sinceSeconds: 0 }),
    ],
  }),
  trace('who leaves the organization leaves the sight of its areas without an exit', RULES.sharedArea, {
    accounts,
    devices: ofBen,
    steps: [
      create(depot()),
      share('depot'),
      drive([0, INSIDE]),
      join('ben', null),
      drive([10, INSIDE], [20, OUTSIDE]),
    ],
    events: [entry(0, 'depot', { readBy: ['ben'] })],
  }),
  trace('the private areas of a new member see the shared devices from then on', RULES.privateArea, {
    accounts,
    devices: shared,
    steps: [
      create(depot({ dwell_seconds: 60 }), 'carl'),
      drive([0, INSIDE]),
      join('carl', 'acme'),
      drive([30, INSIDE], [89, INSIDE], [90, INSIDE]),
    ],
    events: [entry(90, 'depot', { sinceSeconds: 30, dwellSeconds: 60, readBy: ['carl'] })],
  }),
];
