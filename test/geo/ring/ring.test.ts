import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { unwrapLine, unwrapRing } from '../../../src/geo/path.ts';
import { parsePoints } from '../shapes.ts';

/** The unwrapped longitudes, then, where they matter, the latitudes, the pole and the turns. */
type Row = readonly [name: string, points: string, lngs: string, more?: string];

const rings: readonly Row[] = [
  ['an ordinary ring keeps its longitudes', '0 0, 4 0, 0 3', '0 4 0 0'],
  ['over the antimeridian they go beyond 180', '179 0, -179 0, -179 1, 179 1', '179 181 181 179 179'],
  ['from the east side too', '-179 0, -179 1, 179 1, 179 0', '181 181 179 179 181'],
  ['180 is written as -180 where the ring lies east', '180 0, -170 0, 180 5', '-180 -170 -180 -180'],
  ['-180 is written as 180 where the ring lies west', '170 0, -180 0, 170 5', '170 180 170 170'],
  ['an edge of exactly 180° goes the way it is written', '-90 0, 90 0, 90 10', '-90 90 90 -90'],
  ['repeated vertices are dropped', '0 0, 0 0, 1 0, 1 1, 1 1, 0 0', '0 1 1 0', '0 0 1 0'],
  ['also under two names', '180 0, -180 0, 170 0, 170 5', '180 170 170 180'],
  ['around the north pole', '0 60, 120 60, -120 60', '0 120 240 360', 'north 1'],
  ['around it westward', '0 60, -120 60, 120 60', '360 240 120 0', 'north -1'],
  ['around the south pole', '0 -60, 120 -60, -120 -60', '0 120 240 360', 'south 1'],
  ['mostly south of the equator', '0 30, 120 -40, -120 -40', '0 120 240 360', 'south 1'],
  ['closed with -180 and 180', '-180 60, -90 60, 0 60, 90 60, 180 60', '-180 -90 0 90 180', 'north 1'],
  [
    'a cut to the pole is no boundary',
    '-180 -84, -90 -80, 0 -83, 90 -70, 180 -84, 180 -90, -180 -90',
    '-180 -90 0 90 180',
    '-84 -80 -83 -70 -84 south 1',
  ],
  [
    'a cut that leaves the pole on another meridian is no boundary either',
    '-180 -80, 0 -80, 180 -84, 180 -90, 0 -90, -180 -90',
    '-180 0 180 180',
    '-80 -80 -84 -80 south 1',
  ],
  [
    'and says which side is meant, though it is the larger',
    '-180 -60, 0 -60, 180 -60, 180 90, 0 90, -180 90',
    '-180 0 180',
    '-60 -60 -60 north 1',
  ],
  [
    'a pole that is reached and left on different ways stays as one vertex',
    '-170 60, 0 60, 170 60, 180 90, -180 90',
    '-180 -170 0 170 180',
    '90 60 60 60 90 north 1',
  ],
  ['a sector has the pole as a corner', '0 60, 90 60, 90 90, 0 90', '0 90 90 0 0'],
  ['over the antimeridian too', '170 80, -170 80, -170 90, 170 90', '170 190 190 170 170'],
  [
    'three quarters up to the pole are no ring around it',
    '0 60, 90 60, 180 60, -90 60, -90 90, 0 90',
    '0 90 180 270 270 0 0',
  ],
  ['a world map', '-180 -90, 180 -90, 180 90, -180 90', '-180 180 180 -180 -180', '-90 -90 90 90 -90'],
  ['twice around', '0 1, 120 2, -120 3, 0 4, 120 5, -120 6', '0 120 240 360 480 600 720', 'none 2'],
];

describe('unwrapRing', () => {
  for (const [name, text, lngs, more = ''] of rings) {
    test(`unwrap a ring: ${name}`, () => {
      const ring = unwrapRing(parsePoints(text));
      const [, lats = '', pole = 'none', turns = '0'] =
        /^([-\d ]*?) ?(?:(north|south|none) (-?\d))?$/.exec(more) ?? [];
      assert.equal(ring.lngs.join(' '), lngs);
      if (lats !== '') assert.equal(ring.lats.join(' '), lats);
      assert.equal(ring.pole ?? 'none', pole);
      assert.equal(ring.turns, Number(turns));
      assert.equal(ring.points.length, ring.lngs.length - 1);
    });
  }
});

const lines: readonly Row[] = [
  ['an ordinary track keeps its longitudes', '10 0, 20 5', '10 20'],
  ['over the antimeridian they run on', '170 0, -170 5', '170 190'],
  ['to and fro over the antimeridian longitudes return', '-170 0, 170 5, -170 9', '190 170 190'],
  ['around the Earth they go beyond 360', '0 0, 120 0, -120 0, 0 0, 120 0', '0 120 240 360 480'],
  ['beside the antimeridian longitudes start at -180', '180 0, -170 0', '-180 -170'],
];

describe('unwrapLine', () => {
  for (const [name, text, lngs] of lines)
    test(`unwrap a line: ${name}`, () => assert.equal(unwrapLine(parsePoints(text)).lngs.join(' '), lngs));
});
