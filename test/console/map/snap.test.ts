import assert from 'node:assert/strict';
import { test } from 'node:test';
import { snapped, verticesIn } from '../../../src/console/page/map/snap.ts';

const WORLD_PX = 512 * 2 ** 14;
/** Degrees of longitude that are one pixel. */
const PX = 360 / WORLD_PX;

test('a place becomes the nearest vertex within ten pixels, also across 180° and far north', () => {
  const at = { lat: 60, lng: 179.9999 };
  const near = { lat: 60, lng: 179.9999 + 4 * PX };
  const nearer = { lat: 60 + 3 * PX * 0.5, lng: 179.9999 };
  assert.equal(snapped(at, [near], WORLD_PX), near);
  assert.equal(snapped(at, [near, nearer], WORLD_PX), nearer);
  const across = { lat: 60, lng: -180 + 4 * PX };
  assert.equal(snapped({ lat: 60, lng: 180 - 4 * PX }, [across], WORLD_PX), across);
  for (const far of [
    { lat: 60, lng: 179.9999 - 11 * PX },
    { lat: 60 + 11 * PX * 0.5, lng: 179.9999 },
  ])
    assert.equal(snapped(at, [far], WORLD_PX), at);
});

test('vertices of other polygons and tracks in the box are offered, a bounded number of them', () => {
  const place = (lng: number, lat = 0) => ({ lat, lng });
  const area = (
    id: number,
    type: 'polygon' | 'polyline' | 'circle',
    points: { lat: number; lng: number }[],
  ) => ({ id, type, points });
  const box = { west: 170, south: -1, east: -170, north: 1 };
  const areas = [
    area(1, 'polygon', [place(175), place(-175), place(160), place(175, 2)]),
    area(2, 'polyline', [place(179)]),
    area(3, 'circle', [place(178)]),
    area(4, 'polygon', [place(177)]),
  ];
  assert.deepEqual(verticesIn(areas, 4, box), [place(175), place(-175), place(179)]);
  const many = area(
    5,
    'polygon',
    Array.from({ length: 6_000 }, () => place(175)),
  );
  assert.equal(verticesIn([many], null, box).length, 5_000);
});
