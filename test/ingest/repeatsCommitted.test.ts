import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fix } from '../../src/ingest/fix.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { type IngestSide, ingestBench } from '../support/ingest/ingestBench.ts';
import { seededRandom } from '../support/seededRandom.ts';

const NOW_MS = Date.now() - 60_000;

const eventsOf = async ({ sql }: IngestSide): Promise<[type: string, occurredAtMs: number][]> => {
  const rows = await sql<{ type: string; occurred_at: Date }[]>`
    select type, occurred_at from fleet_event order by id`;
  return rows.map((row) => [row.type, row.occurred_at.getTime()]);
};

test('whatever comes again through whichever pod, each alarm is reported once, and the order of sending decides the rest', async (t) => {
  const bench = await ingestBench(t, { pods: 2 });
  const [one, two] = bench.sides as [IngestSide, IngestSide];
  const [imei] = bench.imeis as [string];
  const random = seededRandom(20_260_314);
  await one.ingest.store([fixOf(imei, NOW_MS, { ignition: true })]);
  const heartbeats = Array.from({ length: 12 }, (_, n) =>
    fixOf(imei, NOW_MS, {
      sentAtMs: NOW_MS + 1_000 * (n + 1),
      alarms: [`alarm ${n % 4}`],
      ignition: n % 2 === 0,
    }),
  );
  const sends = Array.from(
    { length: 120 },
    () => heartbeats[Math.floor(random() * heartbeats.length)] as Fix,
  );
  await Promise.all([...heartbeats, ...sends].map((fix) => (random() < 0.5 ? one : two).ingest.store([fix])));
  const events = await eventsOf(one);
  assert.equal(events.filter(([type]) => type === 'alarm').length, 4);
  const turns = events.filter(([type]) => type !== 'alarm').map(([type]) => type);
  assert.equal(turns.at(-1), 'ignition_off', 'the heartbeat that was sent last says off');
  assert.deepEqual(
    turns,
    turns.map((_, n) => (n % 2 === 0 ? 'ignition_off' : 'ignition_on')),
  );
  const [count] = await one.sql<{ n: number }[]>`select count(*)::int as n from position`;
  assert.equal(count?.n, 1);
});
