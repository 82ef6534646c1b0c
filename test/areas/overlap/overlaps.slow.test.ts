import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type AreaGeometry, toVertices } from '../../../src/areas/area.ts';
import type { Area } from '../../../src/areas/areaCatalog.memory.ts';
import {
  type FoundOverlaps,
  type OverlapLimits,
  Overlaps,
  type TooComplex,
} from '../../../src/areas/overlap/overlaps.ts';
import { toShape } from '../../../src/areas/shape.ts';
import { Overloaded } from '../../../src/lib/fairSemaphore.ts';
import type { Result } from '../../../src/lib/result.ts';
import {
  circle as circleOf,
  comb as combOf,
  common,
  outline,
  type Pair,
  polygon as polygonOf,
  track,
} from './outlines.ts';

type Found = Result<FoundOverlaps, TooComplex>;

const ATTACKER = 1;
const VICTIM = 2;

let areas = 0;
function areaOf(geometry: AreaGeometry): Area {
  const definition = { name: 'Area', color: '#000000', externalId: null, dwellSeconds: 0, geometry };
  const id = ++areas;
  const stored = { id, worldId: 1, accountId: 1, revision: 1, createdAtMs: 0, updatedAtMs: 0, definition };
  return { ...stored, shape: toShape(definition.geometry) } as unknown as Area;
}

const circle = (lat: number, lng: number, radiusM: number): Area => areaOf(circleOf(lat, lng, radiusM));
const polygon = (...pairs: Pair[]): Area => areaOf(polygonOf(...pairs));

/** A track that takes many seconds to measure: each of its edges runs from 80° S to 80° N. */
const endlessTrack = (): Area =>
  areaOf(track(50, ...Array.from({ length: 2_000 }, (_, n): Pair => [n % 2 === 0 ? -80 : 80, n / 100])));

/** Two of them, one upright, take polygon-clipping a tenth of a second and more memory than anything else here. */
const comb = (isUpright: boolean): Area => polygon(...combOf(isUpright));

function newOverlaps(t: TestContext, limits: Partial<OverlapLimits> = {}): Overlaps {
  const overlaps = new Overlaps(limits);
  t.after(() => overlaps.close());
  return overlaps;
}

const idsOf = (found: Found): number[] =>
  found.ok ? Array.from(found.value.overlaps, ({ other }) => other.id) : assert.fail('too complex');

const SMALL = circle(0, 0, 100);
const NEAR = circle(0, 0.001, 100);

describe('overlaps are measured in a thread', () => {
  test('with the result of measuring them one by one, largest first, then by id, without the area itself', async (t) => {
    const area = polygon([0, 0], [0, 1], [1, 1], [1, 0]);
    const inside = Array.from({ length: 450 }, (_, n) => circle(0.5, 0.5, 100 + (n % 150)));
    const others = [
      circle(0, 0.5, 9_000),
      polygon([0.5, 0.5], [2, 0.5], [2, 2]),
      ...inside,
      area,
      circle(5, 5, 9_000),
    ];
    const found = await newOverlaps(t).find(VICTIM, area, others);
    const outlineM2 = (one: Area) => outline(one.definition.geometry);
    const own = outlineM2(area);
    const expected = others
      .filter((other) => other !== area)
      .map((other) => {
        const { areaM2 } = outlineM2(other);
        const commonM2 = common(own, outlineM2(other));
        return { other, commonM2, share: commonM2 / own.areaM2, shareOfOther: commonM2 / areaM2 };
      })
      .filter(({ commonM2 }) => commonM2 > 0)
      .sort((a, b) => b.commonM2 - a.commonM2 || a.other.id - b.other.id);
    assert.ok(found.ok);
    assert.equal(found.value.total, 452);
    assert.deepEqual([...found.value.overlaps], expected);
  });

  test('of vertices that are a part of something larger, which is not sent along', async (t) => {
    const square = toVertices(
      [0, 1, 2, 3].map((n) => ({ lat: Math.floor(n / 2), lng: Number(n === 1 || n === 2) })),
    );
    const large = new Float64Array(1_000_000);
    large.set(square, 10);
    const area = areaOf({ type: 'polygon', points: large.subarray(10, 10 + square.length) });
    assert.deepEqual(idsOf(await newOverlaps(t).find(VICTIM, area, [NEAR])), [NEAR.id]);
  });

  test('and one that takes too long says which other area takes longest', async (t) => {
    const track = endlessTrack();
    const found = await newOverlaps(t, { callMs: 500 }).find(VICTIM, SMALL, [NEAR, track]);
    assert.ok(!found.ok);
    assert.equal(found.error.longest, track);
  });

  test('one of an account at a time, while 50 wait', async (t) => {
    const overlaps = newOverlaps(t, { callMs: 100 });
    const track = endlessTrack();
    const calls = Promise.allSettled(
      Array.from({ length: 51 }, () => overlaps.find(ATTACKER, track, [NEAR])),
    );
    await assert.rejects(overlaps.find(ATTACKER, SMALL, [NEAR]), Overloaded);
    assert.deepEqual(idsOf(await overlaps.find(VICTIM, SMALL, [NEAR])), [NEAR.id]);
    await overlaps.close();
    const ends = await calls;
    assert.equal(ends.length, 51);
    assert.ok(ends.some(({ status }) => status === 'rejected'));
  });

  test('whose memory ends with the call that takes too much, and no other one fails', async (t) => {
    // How much the thread needs to start depends on Node, so less and less is given until the combs are too much.
    for (let heapMb = 14; ; heapMb -= 2) {
      assert.ok(heapMb > 6, 'the combs never took too much');
      const overlaps = newOverlaps(t, { heapMb });
      await overlaps.find(VICTIM, SMALL, [NEAR]);
      const [combs, ...others] = await Promise.all([
        overlaps.find(ATTACKER, comb(false), [comb(true)]),
        ...Array.from({ length: 2 }, () => overlaps.find(VICTIM, SMALL, [NEAR])),
      ]);
      for (const found of others) assert.deepEqual(idsOf(found), [NEAR.id]);
      assert.deepEqual(idsOf(await overlaps.find(VICTIM, SMALL, [NEAR])), [NEAR.id], 'in a new thread');
      await overlaps.close();
      if (!combs.ok) return;
    }
  });

  test('that is ended when a step does not end', async (t) => {
    const found = await newOverlaps(t, { stepMs: 8 }).find(ATTACKER, comb(false), [comb(true)]);
    assert.ok(!found.ok);
  });

  test('which a stop ends at once, whatever runs in it', async () => {
    const overlaps = new Overlaps();
    const running = assert.rejects(overlaps.find(ATTACKER, endlessTrack(), [endlessTrack()]));
    await overlaps.find(VICTIM, SMALL, [NEAR]);
    await overlaps.close();
    await running;
    await assert.rejects(overlaps.find(VICTIM, SMALL, [NEAR]));
  });
});
