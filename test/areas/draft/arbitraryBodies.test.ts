import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { pino } from 'pino';
import { AREA_ERRORS } from '../../../src/areas/areaFields.ts';
import { anyCharacter } from '../../support/http/anyCharacter.ts';
import { type AreaApi, areaApi, BODIES } from '../../support/http/areas.ts';
import { ownerPod } from '../../support/ownerPod.ts';
import type { Reply } from '../../support/pod.ts';
import { runs } from '../../support/torture.ts';
import { anyBody, anyImport } from './arbitraries.ts';

const SEED = 20_261_120;
const KNOWN = new Set(Object.values(AREA_ERRORS).map(({ field, code }) => `${field} ${code}`));
const CODES = ['a', 'b:1', 'c/d'];

/** As JSON; now and then something that is none. */
const sent = (body: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 20, arbitrary: body.map((value) => JSON.stringify(value) ?? '') },
    { weight: 1, arbitrary: fc.string({ unit: anyCharacter, maxLength: 40 }) },
    { weight: 1, arbitrary: body.map((value) => (JSON.stringify(value) ?? '').slice(0, -1)) },
    { weight: 1, arbitrary: fc.constantFrom('', '[]', 'null', '{"name":1e999}', '{"__proto__":{}}') },
  );

describe('a body of any shape is stored or refused, and never fails, when it is sent', () => {
  /** Lines of the pod's log at level error and above. */
  const errors: string[] = [];
  const collect = (line: string): void => {
    if ((JSON.parse(line) as { level: number }).level >= 50) errors.push(line);
  };
  const owner = ownerPod({ log: pino({ level: 'error' }, { write: collect }) });
  let api: AreaApi;
  before(() => {
    api = areaApi(owner.pod, owner.key);
  });

  /** An error has documented codes, and what is stored can be read. */
  async function assertAnswered(reply: Reply, body: string): Promise<void> {
    assert.deepEqual(errors, []);
    if (reply.status === 422) {
      const { details } = reply.body.error;
      assert.ok(details.length > 0, body);
      for (const { field, code } of details) assert.ok(KNOWN.has(`${field} ${code}`), `${field} ${code}`);
      return;
    }
    if (reply.status === 409) return;
    assert.ok([200, 201].includes(reply.status), `${reply.status} ${body}`);
    await assertReadable(reply.body.data.id);
  }

  /** Readable in both formats, answers contains, and its export is valid to import. */
  async function assertReadable(id: number): Promise<void> {
    const detail = await api.get(`/${id}`);
    assert.equal(detail.status, 200);
    assert.equal((await api.contains(id, 10, 20)).status, 200);
    const feature = (await api.get(`/${id}?format=geojson`)).body.data;
    const dry = await api.import(feature, '?dry_run=true');
    const { data } = dry.body;
    assert.ok(
      dry.status === 200 && data.valid >= 1 && data.errors.length === 0,
      JSON.stringify(detail.body.data),
    );
  }

  test('by POST, with an Idempotency-Key or without', async () => {
    await fc.assert(
      fc.asyncProperty(sent(anyBody), fc.boolean(), async (body, isKeyed) => {
        await assertAnswered(
          await api.post(body, isKeyed ? { 'Idempotency-Key': crypto.randomUUID() } : {}),
          body,
        );
      }),
      { seed: SEED, numRuns: runs(25) },
    );
  });

  test('by PUT', async () => {
    await fc.assert(
      fc.asyncProperty(sent(anyBody), fc.constantFrom(...CODES), async (body, code) => {
        const reply = await api.send('PUT', `/by-external-id/${encodeURIComponent(code)}`, { body });
        await assertAnswered(reply, body);
        if (reply.status < 300) assert.equal(reply.body.data.external_id, code);
      }),
      { seed: SEED, numRuns: runs(25) },
    );
  });

  test('by PATCH, whatever the area was, and whether it is there or not', async () => {
    const ids = await Promise.all(Object.values(BODIES).map((body) => api.make(body)));
    await fc.assert(
      fc.asyncProperty(sent(anyBody), fc.nat(3), async (body, place) => {
        const before = (await api.get(`/${ids[place]}`)).body.data;
        const reply = await api.send('PATCH', `/${ids[place]}`, { body });
        await assertAnswered(reply, body);
        const after = (await api.get(`/${ids[place]}`)).body.data;
        assert.deepEqual(after, reply.status === 200 ? reply.body.data : before);
        const missing = await api.send('PATCH', '/9007199254740991', { body });
        assert.ok([404, 422].includes(missing.status), `${missing.status} ${body}`);
        // Refused for what it is, it is refused for that on every area.
        if (missing.status === 422) assert.equal(reply.status, 422, body);
      }),
      { seed: SEED, numRuns: runs(25) },
    );
  });

  /** What a report says but for the ids of areas that a dry run does not make. */
  const predicted = ({ body: { data } }: Reply) => ({
    ...data,
    dry_run: null,
    created: data.created.map(({ index }: { index: number }) => index),
    updated: data.updated.map(({ index }: { index: number }) => index),
  });

  test('by import, which a dry run predicts', async () => {
    await fc.assert(
      fc.asyncProperty(sent(anyImport), async (body) => {
        const before = (await api.get('?limit=1')).body.meta.total;
        const dry = await api.import(body, '?dry_run=true');
        assert.equal((await api.get('?limit=1')).body.meta.total, before);
        const real = await api.import(body);
        assert.deepEqual(errors, []);
        assert.ok([200, 201, 422].includes(real.status), `${real.status} ${body}`);
        assert.ok([200, 422].includes(dry.status), `${dry.status} ${body}`);
        if (dry.status === 422) {
          assert.equal(real.text, dry.text);
          return;
        }
        const { valid, created } = real.body.data;
        assert.deepEqual(predicted(dry), predicted(real));
        assert.equal(real.status === 422, valid === 0 && !real.body.data.dry_run);
        if (real.body.data.dry_run) return;
        assert.equal((await api.get('?limit=1')).body.meta.total, before + created.length);
        for (const { id } of created) await assertReadable(id);
      }),
      { seed: SEED, numRuns: runs(15) },
    );
  });
});
