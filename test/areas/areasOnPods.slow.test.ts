import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { type AreaPods, startAreaPods } from '../support/http/areaPods.ts';
import { type AreaApi, CIRCLE, gist } from '../support/http/areas.ts';
import { skipWithoutRedis, type TestRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

const skip = skipWithoutRedis();

async function flush(redis: TestRedis): Promise<void> {
  const client = new Redis(redis.url);
  await client.flushall();
  client.disconnect();
}

interface RedisState {
  readonly title: string;
  readonly rounds: number;
  readonly before?: (redis: TestRedis, round: number) => Promise<void>;
  /** Between the write and the reads. */
  readonly between?: (redis: TestRedis, round: number) => Promise<void>;
}

const pause = async (redis: TestRedis): Promise<void> => redis.pause();
const resume = async (redis: TestRedis): Promise<void> => redis.resume();
const REDIS_STATES: Readonly<Record<'with' | 'without', readonly RedisState[]>> = {
  with: [
    { title: 'as it is', rounds: runs(4) },
    { title: 'emptied before', rounds: runs(2), before: flush },
    { title: 'stops answering between, and answers again', rounds: runs(2), before: resume, between: pause },
  ],
  without: [
    { title: 'as it is', rounds: runs(3) },
    { title: 'emptied between', rounds: runs(2), between: flush },
    {
      title: 'does not answer before',
      rounds: runs(2),
      before: (redis, round) => (round % 2 === 0 ? pause(redis) : resume(redis)),
    },
    {
      title: 'gone, and comes back empty',
      rounds: runs(2),
      before: async (redis, round) => (round % 2 === 0 ? redis.stop() : undefined),
      between: async (redis, round) => (round % 2 === 1 ? redis.restart() : undefined),
    },
  ],
};

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

  async function assertSharing({ admin, apis }: AreaPods): Promise<void> {
    await admin.account('colleague@example.com', { organization: 'Haulage' });
    const { key } = await admin.key('colleague@example.com');
    const id = await apis[0].make(CIRCLE);
    for (const { pod } of apis) {
      const seen = async () => (await pod.get(`/api/v3/areas/${id}`, key)).status;
      await admin.run('area:share', '--id', String(id));
      assert.equal(await seen(), 200);
      await admin.run('area:unshare', '--id', String(id));
      assert.equal(await seen(), 404);
    }
  }

  /** Many readers while one writes. */
  async function assertNoStepBack(apis: AreaPods['apis']): Promise<void> {
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
      for (let n = 1; n <= runs(6); n++) {
        assert.equal((await apis[n % 2]!.patch(id, { dwell_seconds: n })).status, 200);
        written = n;
      }
    } finally {
      isDone = true;
    }
    await readers;
  }

  for (const withNotifications of [true, false]) {
    test(`${withNotifications ? 'with' : 'without'} notifications: shared and edited, whatever Redis does`, async (t) => {
      const both = await startAreaPods(t, { withNotifications });
      const { redis, apis } = both;
      t.after(() => redis.resume());
      await assertSharing(both);
      await assertNoStepBack(apis);
      const random = seededRandom(withNotifications ? 1 : 2);
      const alive: Truth[] = [];
      for (const { title, rounds, before, between } of REDIS_STATES[withNotifications ? 'with' : 'without']) {
        for (let round = 0; round < rounds; round++) {
          const [writer, reader] = round % 2 === 0 ? apis : [apis[1], apis[0]];
          await before?.(redis, round);
          const truth = await write(writer, alive, random, round);
          await between?.(redis, round);
          await assertSeen(reader, truth, `${title}, round ${round}`);
          await assertSeen(writer, truth, `${title}, round ${round}, by the writer`);
          const others = alive.filter(({ id }) => id !== truth.id);
          alive.splice(0, alive.length, ...others, ...(truth.center === null ? [] : [truth]));
        }
        redis.resume();
      }
    });
  }
});
