import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { type AreaCouple, startAreaCouple } from '../support/areaCouple.ts';
import { type AreaApi, CIRCLE, gist, POLYGON } from '../support/areas.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { skipWithoutRedis, type TestRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';

const skip = skipWithoutRedis();

async function flush(redis: TestRedis): Promise<void> {
  const client = new Redis(redis.url);
  await client.flushall();
  client.disconnect();
}

interface Weather {
  readonly title: string;
  readonly withBells: boolean;
  readonly rounds: number;
  /** Before the write, and between the write and the reads. */
  readonly before: (redis: TestRedis, round: number) => Promise<void>;
  readonly between: (redis: TestRedis, round: number) => Promise<void>;
}

const nothing = async (): Promise<void> => {};
const WEATHERS: readonly Weather[] = [
  { title: 'as it is', withBells: true, rounds: 40, before: nothing, between: nothing },
  { title: 'when no bell rings', withBells: false, rounds: 20, before: nothing, between: nothing },
  { title: 'when Redis is emptied between', withBells: false, rounds: 16, before: nothing, between: flush },
  { title: 'when Redis is emptied before', withBells: true, rounds: 16, before: flush, between: nothing },
  {
    title: 'when Redis stops answering between, and answers again',
    withBells: true,
    rounds: 6,
    before: async (redis) => redis.resume(),
    between: async (redis) => redis.pause(),
  },
  {
    title: 'when Redis does not answer before',
    withBells: false,
    rounds: 6,
    before: async (redis, round) => (round % 2 === 0 ? redis.pause() : redis.resume()),
    between: nothing,
  },
  {
    title: 'when Redis is gone, and comes back empty',
    withBells: false,
    rounds: 6,
    before: (redis, round) => (round % 2 === 0 ? redis.stop() : nothing()),
    between: (redis, round) => (round % 2 === 1 ? redis.restart() : nothing()),
  },
];

/** One area in a state that all pods must agree on; null: it is deleted. */
interface Truth {
  readonly id: number;
  readonly center: { readonly lat: number; readonly lng: number } | null;
  readonly name: string;
}

async function assertSeen(reader: AreaApi, truth: Truth, hint: string): Promise<void> {
  const detail = await reader.get(`/${truth.id}`);
  if (truth.center === null) {
    assert.equal(gist(detail), '404 NOT_FOUND', hint);
    assert.equal(gist(await reader.contains(truth.id, 0, 0)), '404 NOT_FOUND', hint);
    assert.ok(!(await reader.ids()).includes(truth.id), hint);
    return;
  }
  assert.equal(detail.body.data?.name, truth.name, hint);
  const { lat, lng } = truth.center;
  assert.equal((await reader.contains(truth.id, lat, lng)).body.data.inside, true, hint);
  assert.equal((await reader.contains(truth.id, lat + 1, lng)).body.data.inside, false, hint);
}

describe('an area written through one pod is seen by the very next read on the other', {
  skip,
  timeout: 120_000,
}, () => {
  /** Writes something at random and returns what must be seen of it. */
  async function write(writer: AreaApi, alive: Truth[], random: () => number, round: number): Promise<Truth> {
    const center = { lat: Math.floor(random() * 80), lng: Math.floor(random() * 170) };
    const name = `Round ${round}`;
    const body = { ...CIRCLE, name, center };
    const dice = random();
    const last = alive.pop();
    if (last === undefined || dice < 0.2) {
      if (last !== undefined) alive.push(last);
      return { id: await writer.make(body), center, name };
    }
    if (dice < 0.5) {
      assert.equal(gist(await writer.patch(last.id, { name, center })), '200');
      return { id: last.id, center, name };
    }
    if (dice < 0.65) {
      const reply = await writer.put(`code-${round % 3}`, body);
      alive.push(last);
      return { id: reply.body.data.id, center, name };
    }
    if (dice < 0.8) {
      const feature = {
        type: 'Feature',
        properties: { name, type: 'circle', radius: 500 },
        geometry: { type: 'Point', coordinates: [center.lng, center.lat] },
      };
      const reply = await writer.import(feature);
      alive.push(last);
      return { id: reply.body.data.created[0].id, center, name };
    }
    assert.equal((await writer.remove(last.id)).status, 204);
    return { ...last, center: null };
  }

  for (const { title, withBells, rounds, before, between } of WEATHERS) {
    test(title, async (t) => {
      const { redis, apis } = await startAreaCouple(t, { withBells });
      t.after(() => redis.resume());
      const random = seededRandom(title.length);
      const alive: Truth[] = [];
      for (let round = 0; round < rounds; round++) {
        const [writer, reader] = round % 2 === 0 ? apis : [apis[1], apis[0]];
        await before(redis, round);
        const truth = await write(writer, alive, random, round);
        await between(redis, round);
        await assertSeen(reader, truth, `${title}, round ${round}`);
        await assertSeen(writer, truth, `${title}, round ${round}, by the writer`);
        const others = alive.filter(({ id }) => id !== truth.id);
        alive.splice(0, alive.length, ...others, ...(truth.center === null ? [] : [truth]));
      }
      redis.resume();
    });
  }

  test('sharing, too, and unsharing', async (t) => {
    const couple = await startAreaCouple(t);
    await couple.admin.account('colleague@example.com', { organization: 'Haulage' });
    const { key } = await couple.admin.key('colleague@example.com');
    const id = await couple.apis[0].make(CIRCLE);
    for (let round = 0; round < 10; round++) {
      const pod = couple.apis[round % 2]!.pod;
      const seen = async () => (await pod.get(`/api/v3/areas/${id}`, key)).status;
      await couple.admin.run('area:share', '--id', String(id));
      assert.equal(await seen(), 200);
      await couple.admin.run('area:unshare', '--id', String(id));
      assert.equal(await seen(), 404);
    }
  });

  test('by many readers while one writes: nobody ever sees a step back', async (t) => {
    const { apis } = await startAreaCouple(t);
    const id = await apis[0].make({ ...CIRCLE, dwell_seconds: 0 });
    let written = 0;
    let isDone = false;
    const read = async (reader: AreaApi): Promise<void> => {
      let seen = 0;
      while (!isDone) {
        const atLeast = written;
        const { dwell_seconds } = (await reader.get(`/${id}`)).body.data;
        assert.ok(dwell_seconds >= Math.max(atLeast, seen), `${dwell_seconds} after ${atLeast} and ${seen}`);
        seen = dwell_seconds;
      }
    };
    const readers = Promise.all([apis[0], apis[1], apis[1]].map(read));
    try {
      for (let n = 1; n <= 60; n++) {
        assert.equal((await apis[n % 2]!.patch(id, { dwell_seconds: n })).status, 200);
        written = n;
      }
    } finally {
      isDone = true;
    }
    await readers;
  });

  test('a pod that starts later has them all', async (t) => {
    const couple: AreaCouple = await startAreaCouple(t);
    const ids: number[] = [];
    for (let n = 0; n < 5; n++) ids.push(await couple.apis[n % 2]!.make({ ...POLYGON, name: `${n}` }));
    await couple.apis[0].remove(ids[2] as number);
    const late = await startPod(couple.url, { t, env: { ...NO_LIMITS, REDIS_URL: couple.redis.url } });
    const { key } = couple.apis[0];
    const [theirs, his] = [await couple.apis[0].get(), await late.get('/api/v3/areas', key)];
    assert.deepEqual(his.body, theirs.body);
    const { body } = await late.get(`/api/v3/areas/${ids[0]}/contains?lat=41.95&lng=12.45`, key);
    assert.equal(body.data.inside, true);
  });
});
