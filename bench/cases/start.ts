import { copyDevices } from '../../src/devices/deviceRows.sql.ts';
import { invariant } from '../../src/lib/invariant.ts';
import { openSql } from '../../src/postgres/sql.ts';
import type { BenchCase } from '../benchCase.ts';
import { smallAreas, storeAreas } from '../setup/areas.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { StartAnswer, StartQuestion } from '../workers/startProbe.ts';

const DEVICES = 1_000_000;
const SMOKE_DEVICES = 1_000;
/** As in the largest world. */
const DEVICES_PER_AREA = 10;

export const start: BenchCase = {
  about: 'start of a process until it is ready, with everything in memory',
  run: async ({ databaseUrl, sizes, smoke, profile, say }) => {
    const devices = sizes?.at(-1) ?? (smoke ? SMOKE_DEVICES : DEVICES);
    await createWorld({ databaseUrl, devices, spread: 'towns', seed: 1, say });
    await storeAreas(databaseUrl, smallAreas(devices / DEVICES_PER_AREA), say);
    const floorSeconds = await readAll(databaseUrl);
    const startedAtMs = Date.now();
    const measured = await askProbe({ kind: 'measure', databaseUrl });
    invariant(measured.kind === 'measured', 'the probe answers what it is asked');
    const { rssMb, readyAtMs } = measured;
    const seconds = (readyAtMs - startedAtMs) / 1_000;
    const profiled = profile ? await askProbe({ kind: 'profile', databaseUrl }) : null;
    return {
      kind: 'measured',
      size: `${devices} devices, ${devices / DEVICES_PER_AREA} areas of 20 vertices`,
      rows: [
        { what: 'start until ready', seconds, rssMb },
        { what: 'floor: reading the rows of the devices', seconds: floorSeconds },
      ],
      metrics: { seconds, rss_mb: rssMb, of_reading: seconds / floorSeconds },
      profiles: profiled?.kind === 'profiled' ? [profiled.profile] : [],
    };
  },
};

/** Asks a new process. */
async function askProbe(question: StartQuestion): Promise<StartAnswer> {
  const probe = openWorker<StartQuestion, StartAnswer>(new URL('../workers/startProbe.ts', import.meta.url));
  return probe.ask(question).finally(() => probe.close());
}

/** Seconds to read the rows of the devices as the service reads them, without using them. */
async function readAll(databaseUrl: string): Promise<number> {
  const sql = openSql(databaseUrl, { maxConnections: 1, name: 'bench' });
  try {
    const startMs = performance.now();
    await sql.begin((tx) => copyDevices(tx, () => undefined));
    return (performance.now() - startMs) / 1_000;
  } finally {
    await sql.end();
  }
}
