import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startAreaPods } from '../../support/http/areaPods.ts';
import type { AreaApi } from '../../support/http/areas.ts';
import { skipWithoutRedis } from '../../support/redis.ts';
import { decodedTile } from './decodedTile.ts';

async function tileOf({ pod, key }: AreaApi, etag?: string) {
  const reply = await fetch(`${pod.api}/api/v3/tiles/areas/8/136/95.mvt`, {
    headers: { 'X-API-Key': key, ...(etag === undefined ? {} : { 'If-None-Match': etag }) },
  });
  const bytes = new Uint8Array(await reply.arrayBuffer());
  return { status: reply.status, etag: reply.headers.get('etag') as string, bytes };
}

const circle = (lat: number) => ({ name: 'C', type: 'circle', center: { lat, lng: 12.5 }, radius_m: 900 });

describe('a tile of areas on two pods', { skip: skipWithoutRedis() }, () => {
  test('is the same with the same ETag, and a write through one is in the next tile of the other', async (t) => {
    const { apis } = await startAreaPods(t);
    const [one, other] = apis;
    for (let n = 0; n < 10; n++) await (n % 2 === 0 ? one : other).make(circle(41.5 + n / 20));
    const [first, second] = [await tileOf(one), await tileOf(other)];
    assert.equal(decodedTile(first.bytes).length, 10);
    assert.equal(second.etag, first.etag);
    assert.deepEqual(second.bytes, first.bytes);
    assert.equal((await tileOf(other, first.etag)).status, 304);
    for (let n = 0; n < 10; n++) {
      const before = (await tileOf(other)).etag;
      await one.make(circle(41.52 + n / 30));
      const after = await tileOf(other, before);
      assert.equal(after.status, 200, 'the other pod has the new area');
      assert.equal(decodedTile(after.bytes).length, 11 + n);
      assert.equal((await tileOf(one, after.etag)).status, 304);
    }
  });
});
