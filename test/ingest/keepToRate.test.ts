import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { FixOutcome } from '../../src/ingest/fix.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { type IngestSide, ingestBench } from '../support/ingest/ingestBench.ts';
import { IS_TORTURE } from '../support/torture.ts';

/** What a device may store at once. */
const BURST_POINTS = 36_000;

const NOW_MS = Date.now();
const HERE = { lat: 10, lng: 10 };

const named = (outcome: FixOutcome): string => (typeof outcome === 'string' ? outcome : 'beyond');
const retriesOf = (outcomes: readonly FixOutcome[]): number[] =>
  outcomes.flatMap((outcome) => (typeof outcome === 'object' ? [outcome.retryAtMs] : []));

/** Two pods, a device with room for so many points, half a point more or less, and one with all room. */
async function startSetup(t: TestContext, room: number) {
  const { imeis, sides } = await ingestBench(t, { devices: 2, pods: 2 });
  const [first, second] = sides as [IngestSide, IngestSide];
  const [imei = '', other = ''] = imeis;
  let leftAtMs = 0;
  /** How many points may have come to the room since it was left, and one for the half. */
  const drained = (): number => (performance.now() - leftAtMs) / 100 + 1;
  const leave = async (points: number): Promise<void> => {
    leftAtMs = performance.now();
    await first.sql`
      update device_state set rate_until = now() + (${BURST_POINTS - points - 0.5} * interval '100 milliseconds')
      where device_id = (select id from device where imei = ${imei})`;
  };
  const stored = async (): Promise<number> => {
    const [row] = await first.sql<{ points: number }[]>`
      select count(*)::int as points from position p join device d on d.id = p.device_id where d.imei = ${imei}`;
    return row?.points ?? 0;
  };
  let sent = 0;
  /** Newer points of the device. */
  const next = (count: number) => Array.from({ length: count }, () => fixOf(imei, NOW_MS + ++sent, HERE));
  await leave(room);
  return { first, second, imei, other, next, leave, drained, stored };
}

describe('a device that stores more than ten points a second over an hour', () => {
  test('has the first that fit stored, and the others refused with when to send them again', async (t) => {
    const { first, other, next, drained, stored } = await startSetup(t, 300);
    const beforeMs = Date.now();
    const mixed = [fixOf(other, NOW_MS, HERE), ...next(600), fixOf(other, NOW_MS + 1, HERE)];
    const outcomes = await first.ingest.store(mixed);
    const names = outcomes.map(named);
    const kept = names.filter((name) => name === 'accepted').length;
    assert.ok(kept >= 302 && kept <= 302 + drained(), `${kept} stored`);
    const own = names.slice(1, -1);
    assert.deepEqual(own, [...Array(kept - 2).fill('accepted'), ...Array(602 - kept).fill('beyond')]);
    assert.deepEqual([names[0], names[601]], ['accepted', 'accepted'], 'the other device');
    assert.equal(await stored(), kept - 2);
    const retries = retriesOf(outcomes);
    const apart = retries.slice(1).map((ms, n) => ms - (retries[n] as number));
    assert.ok(apart.every((ms) => ms >= 99 && ms <= 101));
    assert.ok((retries[0] as number) >= beforeMs - 1_000 && (retries[0] as number) < Date.now() + 1_000);
  });

  test('is held to it by all pods together', async (t) => {
    const { first, second, next, leave, drained, stored } = await startSetup(t, 50);
    for (let round = 0; round < 8; round++) {
      await (round % 2 === 0 ? first : second).ingest.store(next(50));
    }
    assert.ok((await stored()) <= 50 + drained(), `${await stored()} stored`);
    await leave(10);
    const outcomes = await second.ingest.store(next(10));
    assert.deepEqual(new Set(outcomes), new Set(['accepted']), 'when there is room again');
  });

  test('may send again what is stored, and the same point twice: neither counts', async (t) => {
    const { first, imei, next, leave, drained } = await startSetup(t, 300);
    const points = next(200);
    assert.deepEqual(new Set(await first.ingest.store(points)), new Set(['accepted']));
    await leave(0);
    const [newer] = next(1) as [ReturnType<typeof fixOf>];
    const outcomes = await first.ingest.store([...points, ...points, newer, newer]);
    assert.deepEqual(new Set(outcomes.slice(0, 400)), new Set(['duplicate']));
    assert.equal(
      named(outcomes[401] as FixOutcome),
      named(outcomes[400] as FixOutcome) === 'beyond' ? 'beyond' : 'duplicate',
    );
    await leave(1);
    const late = Array.from({ length: 400 }, (_, n) => fixOf(imei, NOW_MS - 60_000 + n, HERE));
    const names = (await first.ingest.store([...points, ...late])).map(named);
    assert.deepEqual(new Set(names.slice(0, 200)), new Set(['duplicate']));
    const kept = names.filter((name) => name === 'late').length;
    assert.ok(kept >= 1 && kept <= 1 + drained(), `${kept} late ones`);
    assert.deepEqual(names.slice(200), [...Array(kept).fill('late'), ...Array(400 - kept).fill('beyond')]);
  });

  test('has room for all points of an hour at once', async (t) => {
    const { first, next, leave, drained, stored } = await startSetup(t, BURST_POINTS);
    const batch = 10_000;
    if (!IS_TORTURE) await leave(batch + 1_000);
    const outcomes: FixOutcome[] = [];
    for (let n = 0; n < (IS_TORTURE ? 4 : 2); n++) outcomes.push(...(await first.ingest.store(next(batch))));
    const kept = outcomes.filter((outcome) => outcome === 'accepted').length;
    const room = IS_TORTURE ? BURST_POINTS : batch + 1_000;
    assert.ok(kept >= room && kept <= room + drained(), `${kept} stored`);
    assert.equal(await stored(), kept);
  });
});
