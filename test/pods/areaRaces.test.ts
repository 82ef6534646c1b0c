import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startAreaCouple } from '../support/areaCouple.ts';
import { type AreaApi, CIRCLE, gist } from '../support/areas.ts';
import type { Reply } from '../support/pod.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';

const skip = skipWithoutRedis();
const pointOf = (external_id: string) => ({
  type: 'Feature',
  properties: { name: 'Imported', external_id },
  geometry: { type: 'Point', coordinates: [12.5, 41.9] },
});
const isReplay = ({ headers }: Reply): boolean => headers.get('idempotent-replayed') === 'true';

describe('calls that meet on two pods', { skip }, () => {
  test('20 repetitions of a creation: one area, one 201 and 19 replays with the same status, body and Location', async (t) => {
    const { apis } = await startAreaCouple(t);
    for (let round = 0; round < 5; round++) {
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          apis[n % 2]!.post({ ...CIRCLE, name: `Round ${round}` }, { 'Idempotency-Key': `round-${round}` }),
        ),
      );
      assert.equal(replies.filter(isReplay).length, 19);
      const seen = new Set(
        replies.map((reply) => `${reply.status} ${reply.headers.get('location')} ${reply.text}`),
      );
      assert.equal(seen.size, 1);
      assert.equal(replies[0]?.status, 201);
    }
    for (const api of apis) assert.equal((await api.ids()).length, 5);
  });

  test('a mixture of creation, upsert and import of one code: one area, documented answers', async (t) => {
    const { apis } = await startAreaCouple(t);
    for (let seed = 1; seed <= 8; seed++) {
      const random = seededRandom(seed);
      const code = `seed-${seed}`;
      const call = async (api: AreaApi): Promise<string> => {
        const dice = random();
        if (dice < 0.4) return `POST ${gist(await api.post({ ...CIRCLE, external_id: code }))}`;
        if (dice < 0.8) return `PUT ${gist(await api.put(code, CIRCLE))}`;
        const { status, body } = await api.import(pointOf(code));
        assert.equal(body.data.valid, 1, JSON.stringify(body));
        return `IMPORT ${status}`;
      };
      const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => call(apis[n % 2]!)));
      const counts = Map.groupBy(answers, (answer) => answer);
      for (const answer of counts.keys()) {
        assert.ok(
          ['POST 201', 'POST 409 CONFLICT', 'PUT 201', 'PUT 200', 'IMPORT 201', 'IMPORT 200'].includes(
            answer,
          ),
          `seed ${seed}: ${answer}`,
        );
      }
      assert.equal(answers.filter((answer) => answer.endsWith(' 201')).length, 1, `seed ${seed}: ${answers}`);
      for (const api of apis) {
        const { data, meta } = (await api.get(`?external_id=${code}`)).body;
        assert.deepEqual([data.length, meta.total], [1, 1], `seed ${seed}`);
      }
    }
  });

  test('with changes and deletions among them: no code twice, nothing undocumented, and both pods agree', async (t) => {
    const { apis } = await startAreaCouple(t);
    for (let seed = 1; seed <= 6; seed++) {
      const random = seededRandom(100 + seed);
      const codes = ['a', 'b', 'c'].map((name) => `${name}-${seed}`);
      const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
      const ids = await Promise.all(codes.map((external_id) => apis[0].make({ ...CIRCLE, external_id })));
      const call = async (api: AreaApi): Promise<string> => {
        const [dice, code, id] = [random(), pick(codes), pick(ids)];
        if (dice < 0.15) return `POST ${gist(await api.post({ ...CIRCLE, external_id: code }))}`;
        if (dice < 0.4) return `PUT ${gist(await api.put(code, CIRCLE))}`;
        if (dice < 0.7) return `PATCH ${gist(await api.patch(id, { external_id: pick([...codes, null]) }))}`;
        if (dice < 0.85) return `DELETE ${gist(await api.remove(id))}`;
        const reply = await api.import({ type: 'FeatureCollection', features: codes.map(pointOf) });
        return `IMPORT ${reply.status} ${reply.body.data.valid}`;
      };
      const answers = await Promise.all(Array.from({ length: 24 }, (_, n) => call(apis[n % 2]!)));
      const documented =
        /^(POST (201|409 CONFLICT)|PUT 20[01]|PATCH (200|404 NOT_FOUND|422 external_id TAKEN)|DELETE (204|404 NOT_FOUND)|IMPORT 20[01] 3)$/;
      for (const answer of answers) assert.match(answer, documented, `seed ${seed}`);
      const lists = await Promise.all(apis.map(async (api) => (await api.get('?limit=200')).body));
      assert.deepEqual(lists[0], lists[1], `seed ${seed}`);
      const taken = lists[0].data.flatMap(
        ({ external_id }: { external_id: string | null }) => external_id ?? [],
      );
      assert.equal(new Set(taken).size, taken.length, `seed ${seed}`);
      for (const id of await apis[1].ids()) await apis[1].remove(id);
    }
  });
});
