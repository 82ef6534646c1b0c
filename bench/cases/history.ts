import { setTimeout as sleep } from 'node:timers/promises';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { EXPORT_FORMATS } from '../../src/history/exportFormats.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import type { BenchCase, CaseContext, Part, Row } from '../benchCase.ts';
import { median } from '../measure/latencies.ts';
import { postgresCpuUs } from '../measure/postgresCpu.ts';
import { type Profile, profile } from '../measure/profile.ts';
import { cpuUs, rssMb } from '../measure/usage.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { measureIngestBeside } from '../setup/ingestBesidePacking.ts';
import { openNearestProbe, PROBES_PER_SECOND } from '../setup/nearestProbe.ts';
import { measurePacking, packAll, storeTrack, TRACKS } from '../setup/packedHistory.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { FileQuestion, FileRead } from '../workers/fileReader.ts';

const DEVICES = 10_000;
const SMOKE_DEVICES = 100;
const DAYS = 30;
const STEP_SECONDS = 10;
/** 30 days of a vehicle that reports every ten seconds. */
const POINTS = (DAYS * 86_400) / STEP_SECONDS;
const SMOKE_POINTS = 5_000;
const ROUNDS = 5;
const PAGES = 9;
const PAGE_POINTS = 1_000;
const SMOKE_SECONDS = 0.3;

export const history: BenchCase = {
  about:
    'the history of vehicles: packed, as a page, as a file of each format and as a summary, beside nearest calls',
  run: async (context) => {
    const { databaseUrl, smoke, say } = context;
    const devices = smoke ? SMOKE_DEVICES : DEVICES;
    const world = await createWorld(context, devices);
    await using sql = openBenchSql(databaseUrl, 2);
    const [account] = await sql<{ world_id: number }[]>`select world_id from device limit 1`;
    const worldIds = [account?.world_id ?? 0];
    const packing = await measurePacking(context, world.deviceIds.slice(1), worldIds);
    const count = context.sizes?.at(-1) ?? (smoke ? SMOKE_POINTS : POINTS);
    const monthMs = count * STEP_SECONDS * 1_000;
    const firstMs = Math.floor(Date.now() / 1_000) * 1_000 - monthMs;
    const track = {
      deviceId: world.deviceIds[0] as number,
      firstMs,
      count,
      stepSeconds: STEP_SECONDS,
      seed: 1,
    };
    const points = await storeTrack(sql, track);
    await sql.unsafe('vacuum analyze position');
    await using service = await startBenchService(databaseUrl);
    await using probe = openNearestProbe(service.url, world.key);
    await using reader = openWorker<FileQuestion, FileRead>('fileReader');
    const headers = { 'X-API-Key': world.key };
    const below = `${service.url}/api/v3/devices/${simulatedImei(0)}/history`;
    const read = (path: string) => reader.ask({ url: `${below}${path}`, headers });
    const pagesUs = () => usOfPages(sql, smoke ? 1 : 4 * ROUNDS, monthMs, read);
    const asRows = await measureReads(context, points, '', read);
    const pageOfRowsUs = await pagesUs();
    const packedPoints = await packAll(sql);
    say(`${packedPoints} of ${points} points are packed`);
    const packed = await measureReads(context, points, 'packed ', read);
    const pagePackedUs = await pagesUs();
    const besidePacking = await measureIngestBeside(context, service, world);
    const alone = await probe.during(() => sleep(smoke ? SMOKE_SECONDS * 1_000 : context.seconds * 200));
    const beside = await probe.during(packed.again);
    const parts = [packing, besidePacking, asRows, packed];
    return {
      kind: 'measured',
      size: `${points} points of one of ${devices} devices`,
      notes: [`The points are those of ${TRACKS}.`],
      rows: [
        ...parts.flatMap(({ rows }) => rows),
        { what: `a page of ${PAGE_POINTS}, as rows, with Postgres`, unit: 'pages', cpuUs: pageOfRowsUs },
        { what: `a page of ${PAGE_POINTS}, packed, with Postgres`, unit: 'pages', cpuUs: pagePackedUs },
        { what: `nearest alone, ${PROBES_PER_SECOND} a second`, ...alone.percentiles() },
        { what: `nearest beside all of these, ${PROBES_PER_SECOND} a second`, ...beside.percentiles() },
      ],
      metrics: Object.assign({}, ...parts.map(({ metrics }) => metrics), {
        nearest_p99_ms: beside.percentile(0.99),
        packed_page_speedup: pageOfRowsUs / pagePackedUs,
      }),
      profiles: [...asRows.profiles, ...packed.profiles],
    };
  },
};

interface MeasuredReads extends Part {
  readonly profiles: Profile[];
  again(): Promise<void>;
}

async function measureReads(
  { smoke, profile: isProfiled }: CaseContext,
  points: number,
  state: '' | 'packed ',
  read: (path: string) => Promise<FileRead>,
): Promise<MeasuredReads> {
  const paths = [
    ...EXPORT_FORMATS.map((format) => [format, `/export?format=${format}`] as const),
    ...['total', 'day', 'trip'].map(
      (by) => [`summary by ${by}`, `/summary?by=${by}&tz=Europe/Rome`] as const,
    ),
  ];
  const rows: Row[] = [];
  const metrics: Record<string, number> = {};
  const profiles: Profile[] = [];
  for (const [what, path] of paths) {
    if (!smoke) await read(path);
    const seconds: number[] = [];
    const beforeUs = cpuUs();
    let bytes = 0;
    for (let round = 0; round < (smoke ? 1 : ROUNDS); round++) {
      const file = await read(path);
      seconds.push(file.seconds);
      bytes = file.bytes;
    }
    const usedUs = cpuUs() - beforeUs;
    const perSecond = points / median(seconds);
    rows.push({
      what: `${state}${path.startsWith('/export') ? `${what}, ${(bytes / points).toFixed(0)} bytes a point` : what}`,
      ...{ unit: 'points', perSecond, seconds: median(seconds) },
      cpuUs: usedUs / (points * seconds.length),
      rssMb: rssMb(),
    });
    const name = `${state}${what}`.replaceAll(' ', '_');
    if (path.startsWith('/export')) metrics[`${name}_points_per_second`] = perSecond;
    else metrics[`${name}_ms`] = median(seconds) * 1_000;
    const work = () => read(path).then(() => points);
    if (isProfiled) profiles.push(await profile(`a point, ${state}${what},`, work));
  }
  const again = async (): Promise<void> => {
    for (const [, path] of paths) await read(path);
  };
  return { rows, metrics, profiles, again };
}

/** Processor time, that of Postgres included, of one of nine pages that lie all over the month. */
async function usOfPages(
  sql: Sql,
  rounds: number,
  monthMs: number,
  read: (path: string) => Promise<FileRead>,
): Promise<number> {
  const usedUs = async () => cpuUs() + ((await postgresCpuUs(sql)) ?? 0);
  let beforeUs = 0;
  // The first round is not counted.
  for (let round = 0; round <= rounds; round++) {
    if (round === 1) beforeUs = await usedUs();
    for (let n = 1; n <= PAGES; n++) {
      const to = new Date(Date.now() - (0.05 + 0.1 * n) * monthMs).toISOString();
      await read(`?limit=${PAGE_POINTS}&to=${to}`);
    }
  }
  return ((await usedUs()) - beforeUs) / (rounds * PAGES);
}
