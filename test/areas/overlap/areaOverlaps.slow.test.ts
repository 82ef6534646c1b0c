import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { areaPod, gist } from '../../support/http/areas.ts';

const service = areaPod();
const { api } = service;

const square = (name: string, south: number, west: number, size: number, more: object = {}) => ({
  name,
  type: 'polygon',
  points: [
    { lat: south, lng: west },
    { lat: south, lng: west + size },
    { lat: south + size, lng: west + size },
    { lat: south + size, lng: west },
  ],
  ...more,
});

describe('the overlaps of an area', () => {
  test('are listed with their size and shares, largest first, and without the area itself and its neighbours', async () => {
    const whole = await api.make(square('Whole', 10, 10, 1));
    const half = await api.make(square('Half', 10.5, 10, 1, { external_id: 'half' }));
    const inside = await api.make({
      name: 'Inside',
      type: 'circle',
      center: { lat: 10.2, lng: 10.2 },
      radius_m: 5_000,
    });
    await api.make(square('Neighbour', 10, 11, 1));
    const { status, body } = await api.get(`/${whole}/overlaps`);
    assert.equal(status, 200);
    assert.deepEqual(
      body.data.map((item: { area: object }) => item.area),
      [
        { id: half, name: 'Half', type: 'polygon', external_id: 'half' },
        { id: inside, name: 'Inside', type: 'circle', external_id: null },
      ],
    );
    assert.deepEqual(body.meta, { total: 2 });
    const [largest, smallest] = body.data;
    assert.ok(Math.abs(largest.share - 0.5) < 0.002);
    assert.ok(Math.abs(largest.share_of_other - 0.5) < 0.002);
    assert.ok(Math.abs(smallest.overlap_m2 - Math.PI * 25e6) < 25_000);
    assert.ok(smallest.share_of_other > 0.9998 && smallest.share_of_other <= 1);
    const { body: ofInside } = await api.get(`/${inside}/overlaps`);
    assert.deepEqual(
      ofInside.data.map((item: { area: { id: number } }) => item.area.id),
      [whole],
    );
    assert.equal(ofInside.data[0].overlap_m2, smallest.overlap_m2, 'the same from both sides');
  });

  test('follow every write of the areas', async () => {
    const one = await api.make(square('One', 30, 30, 1));
    const other = await api.make(square('Other', 30.5, 30.5, 1));
    const total = async () => (await api.get(`/${one}/overlaps`)).body.meta.total;
    assert.equal(await total(), 1);
    await api.patch(other, { points: square('', 40, 40, 1).points });
    assert.equal(await total(), 0);
    await api.patch(other, { points: square('', 30.2, 30.2, 0.1).points });
    assert.equal(await total(), 1);
    await api.remove(other);
    assert.equal(await total(), 0);
  });

  test("of a stranger's area are a 404, and areas of strangers are not listed", async () => {
    const own = await api.make(square('Own', 50, 50, 1));
    const stranger = await service.newAccount();
    const theirs = await stranger.make(square('Theirs', 50, 50, 1));
    assert.equal(gist(await stranger.get(`/${own}/overlaps`)), '404 NOT_FOUND');
    assert.equal(
      (await stranger.get(`/${own}/overlaps`)).text,
      (await stranger.get('/999999/overlaps')).text,
    );
    assert.deepEqual((await stranger.get(`/${theirs}/overlaps`)).body.data, []);
  });

  test('that take too long are a 422 that says what to simplify; others are answered in the meantime', async () => {
    const points = Array.from({ length: 2_000 }, (_, n) => ({ lat: n % 2 === 0 ? -80 : 80, lng: n / 100 }));
    const track = await api.make({ name: 'Endless', type: 'polyline', points });
    const victim = await service.newAccount();
    const one = await victim.make(square('One', 60, 60, 1));
    const other = await victim.make(square('Other', 60.5, 60.5, 1));
    const order: string[] = [];
    const attack = api.get(`/${track}/overlaps`).then((reply) => {
      order.push('attacker');
      return reply;
    });
    for (let n = 0; n < 3; n++) {
      const { body } = await victim.get(`/${one}/overlaps`);
      assert.deepEqual(
        body.data.map((item: { area: { id: number } }) => item.area.id),
        [other],
      );
      assert.equal((await victim.contains(one, 60.2, 60.2)).body.data.inside, true);
      order.push('victim');
    }
    const reply = await attack;
    assert.equal(gist(reply), '422 TOO_COMPLEX');
    assert.match(reply.body.error.message, /simplify this area \(2000 vertices\)/);
    assert.equal(order.at(-1), 'attacker');
  });

  test('of what is no id are a 400', async () => {
    assert.equal(gist(await api.get('/x/overlaps')), '400 BAD_REQUEST');
  });
});
