import { copyDevices } from '../../src/devices/deviceRows.sql.ts';
import type { BenchCase } from '../benchCase.ts';
import { smallAreas, storeAreas } from '../setup/areas.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { StartAnswer, StartQuestion } from '../workers/startProbe.ts';

const DEVICES = 1_000_000;
const SMOKE_DEVICES = 1_000;
const DEVICES_PER_AREA = 10;

export const start: BenchCase = {
  about: 'start of a process until it is ready, with everything in memory',
  run: async (context) => {
    const { databaseUrl, sizes, smoke, say } = context;
    const devices = sizes?.at(-1) ?? (smoke ? SMOKE_DEVICES : DEVICES);
    await createWorld(context, devices);
    const areas = Math.min(devices, DEVICES) / DEVICES_PER_AREA;
    await storeAreas(databaseUrl, smallAreas(areas), say);
    const floorSeconds = await readAll(databaseUrl);
    const startedAtMs = Date.now();
    const { rssMb, readyAtMs } = await askProbe({ isProfiled: false, databaseUrl });
    const seconds = (readyAtMs - startedAtMs) / 1_000;
    const profiled = context.profile ? await askProbe({ isProfiled: true, databaseUrl }) : null;
    return {
      kind: 'measured',
      size: `${devices} devices, ${areas} areas of 20 vertices`,
      rows: [
        { what: 'start until ready', seconds, rssMb },
        { what: 'floor: reading the rows of the devices', seconds: floorSeconds },
      ],
      metrics: { seconds, rss_mb: rssMb, of_reading: seconds / floorSeconds },
      profiles: profiled?.profiles ?? [],
    };
  },
};

async function askProbe(question: StartQuestion): Promise<StartAnswer> {
  await using probe = openWorker<StartQuestion, StartAnswer>('startProbe');
  return await probe.ask(question);
}

/** Seconds to read the rows of the devices as the service reads them, without using them. */
async function readAll(databaseUrl: string): Promise<number> {
  await using sql = openBenchSql(databaseUrl);
  const startMs = performance.now();
  const ignore = () => undefined;
  await sql.begin((tx) => copyDevices(tx, ignore, ignore));
  return (performance.now() - startMs) / 1_000;
}
