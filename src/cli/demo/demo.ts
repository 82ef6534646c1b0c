import { destination, pino } from 'pino';
import type { Config } from '../../config.ts';
import { invariant } from '../../lib/errors.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { MINUTE_MS, systemClock } from '../../lib/time.ts';
import { DataDirInUseError } from '../../postgres/embedded/embedded.ts';
import { reachableHost } from '../../readyText.ts';
import { type Service, startService } from '../../wiring.ts';
import { interruption } from '../input.ts';
import type { IngestClient, SendOutcome } from '../simulate/drive.ts';
import { drive as driveFleet, openIngestClient } from '../simulate/drive.ts';
import { createFleet, type SimulatedFleet, type SimulatedPoint } from '../simulate/simulatedFleet.ts';
import { apiUrl, demoConfig, endText, startText, welcomeText } from './demoConfig.ts';
import { lastReportMs, registerDemo, saveDemoAreas } from './demoTenant.ts';

const PROGRESS_MS = 1_000;
/** How many vehicles drive, and how often each reports. */
const VEHICLES = 150;
const REPORT_EVERY_S = 2;
/** They have driven for so long before the demo starts, so that the map has their roads: a point of each every few seconds. */
const DRIVEN_MS = 12 * MINUTE_MS;
const DRIVEN_EVERY_MS = 6_000;
/** Of a request. */
const POINTS_AT_A_TIME = 3_000;
/** Rome, between the Pantheon and the Colosseum: the town of the simulation is 9 km wide. */
const CENTRE = { lat: 41.8945, lng: 12.4845 };
const SEED = 17;

const interrupted = interruption(() => print('\nStopping.'));

async function demo(): Promise<Result<null, string>> {
  const config = await demoConfig(process.env);
  if (!config.ok) return fail(config.error.join('\n'));
  print(startText(config.value, process.env));
  const service = await start(config.value);
  if (!service.ok) return service;
  try {
    return await drive(config.value, service.value);
  } finally {
    await service.value.stop();
    print(endText(config.value));
  }
}

async function start(config: Config): Promise<Result<Service, string>> {
  try {
    return ok(
      await startService(config, pino({ level: config.logLevel }, destination({ fd: 2, sync: true }))),
    );
  } catch (error) {
    if (error instanceof DataDirInUseError && error.holder.kind === 'service') {
      return fail(
        `The demo runs already (process ${error.holder.pid}): paste the lines that it printed, or stop it with Ctrl-C ` +
          'where it runs. A second one needs a folder of its own: set DATA_DIR.',
      );
    }
    const reason = error instanceof Error ? error.message : String(error);
    return fail(
      `The demo cannot start. ${reason}\nTo begin with an empty folder, delete ${config.dataDir}. The demo only runs ` +
        'on the Postgres that it brings; npm start takes any, by DATABASE_URL.',
    );
  }
}

/** From the running service to Ctrl-C. The first points are in before anything is printed that asks for them. */
async function drive(config: Config, service: Service): Promise<Result<null, string>> {
  const tenant = await registerDemo(config, VEHICLES, complain);
  if (!tenant.ok) return tenant;
  const { imeis, key, password } = tenant.value;
  const token = config.ingestTokens?.[0] ?? service.generatedIngestToken;
  invariant(token !== null, 'a service without a configured token has a generated one');
  const host = reachableHost(config.ingestHost);
  const town = new DemoTown(imeis, openIngestClient({ host, port: service.ingestPort, token }));
  try {
    const lastMs = await lastReportMs(apiUrl(config, service), key, imeis[0] as string);
    if (!lastMs.ok) return lastMs;
    const driven = await town.sendDriven(lastMs.value);
    if (!driven.ok || interrupted.aborted) return driven;
    // Made after all that, so what happens first is that vehicles enter them.
    const areaId = await saveDemoAreas(apiUrl(config, service), key);
    if (!areaId.ok) return areaId;
    const arrived = await town.arrive();
    if (!arrived.ok || interrupted.aborted) return arrived;
    print(welcomeText(config, service, { key, password, imei: town.fastestImei(), areaId: areaId.value }));
    return await driveUntilEnd(town, service);
  } finally {
    town.client.close();
  }
}

async function driveUntilEnd(town: DemoTown, service: Service): Promise<Result<null, string>> {
  const lost = new AbortController();
  let reason: Error | null = null;
  void service.failed.then((error) => {
    reason = error;
    lost.abort();
  });
  const progress = process.stdout.isTTY
    ? setInterval(() => overwrite(town.progress()), PROGRESS_MS)
    : undefined;
  const driven = await town.drive(AbortSignal.any([interrupted, lost.signal]));
  clearInterval(progress);
  if (progress !== undefined) overwrite('');
  return reason === null ? driven : fail((reason as Error).message);
}

/** The vehicles of the demo on their way through the ingest listener. */
class DemoTown {
  readonly client: IngestClient;
  readonly #imeis: readonly string[];
  readonly #fleet: SimulatedFleet;
  readonly #speedsKmh = new Map<string, number>();
  #stored = 0;
  #shown = { stored: 0, atMs: systemClock() };

  constructor(imeis: readonly string[], client: IngestClient) {
    this.client = client;
    this.#imeis = imeis;
    this.#fleet = createFleet({ imeis, seed: SEED, startMs: systemClock() - DRIVEN_MS, centre: CENTRE });
  }

  /**
   * Sends where every vehicle has driven before; settles when all of it is stored. Not what lies before `lastMs`: then they
   * drove in an earlier run of the demo, elsewhere.
   */
  async sendDriven(lastMs: number): Promise<Result<null, string>> {
    const nowMs = systemClock();
    let points: SimulatedPoint[] = [];
    for (let atMs = nowMs - DRIVEN_MS + DRIVEN_EVERY_MS; atMs <= nowMs; atMs += DRIVEN_EVERY_MS) {
      const stepped = this.#imeis.map((_, index) => this.#fleet.step(index, atMs));
      if (atMs > lastMs) points.push(...stepped);
      if (points.length < POINTS_AT_A_TIME && atMs < nowMs) continue;
      if (points.length === 0) continue;
      const sent = await this.#sendFirst(points);
      if (!sent.ok) return sent;
      points = [];
    }
    return ok(null);
  }

  /** Sends a point of every vehicle; settles when all are stored. */
  arrive(): Promise<Result<null, string>> {
    const nowMs = systemClock();
    return this.#sendFirst(this.#imeis.map((_, index) => this.#fleet.step(index, nowMs)));
  }

  async #sendFirst(points: readonly SimulatedPoint[]): Promise<Result<null, string>> {
    const outcome = await this.#send(points);
    if (outcome.kind !== 'taken') return fail(outcome.message);
    const [rejected] = outcome.counts.rejected;
    return rejected === undefined ? ok(null) : fail(`a first point was rejected: ${rejected.message}`);
  }

  /** Drives until aborted. Fails when the service rejects the points or stays away. */
  async drive(signal: AbortSignal): Promise<Result<null, string>> {
    this.#shown = { stored: this.#stored, atMs: systemClock() };
    let available = true;
    const send = async (points: readonly SimulatedPoint[]): Promise<SendOutcome> => {
      const outcome = await this.#send(points);
      if (outcome.kind === 'unavailable' && available && !signal.aborted) complain(outcome.message);
      available = outcome.kind !== 'unavailable';
      return outcome;
    };
    const driven = await driveFleet({
      fleet: this.#fleet,
      devices: this.#imeis.length,
      pointsPerSecond: this.#imeis.length / REPORT_EVERY_S,
      seconds: Number.POSITIVE_INFINITY,
      client: { send },
      interrupted: signal,
      nowMs: systemClock,
      say: () => undefined, // progress() says it in plain words
    });
    return driven.ok ? ok(null) : driven;
  }

  /** A vehicle that moves right now. */
  fastestImei(): string {
    return [...this.#speedsKmh].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
  }

  /** What happened since the last call, in one line. */
  progress(): string {
    const nowMs = systemClock();
    const { stored, atMs } = this.#shown;
    const rate = Math.round(((this.#stored - stored) * 1_000) / Math.max(1, nowMs - atMs));
    this.#shown = { stored: this.#stored, atMs: nowMs };
    const moving = [...this.#speedsKmh.values()].filter((speedKmh) => speedKmh > 0).length;
    return `${rate} points/s, ${moving} of ${this.#imeis.length} vehicles moving, ${this.#stored} points stored`;
  }

  async #send(points: readonly SimulatedPoint[]): Promise<SendOutcome> {
    const outcome = await this.client.send(points);
    if (outcome.kind === 'taken') {
      this.#stored += outcome.counts.accepted;
      for (const point of points) this.#speedsKmh.set(point.imei, point.speed_kmh);
    }
    return outcome;
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** The last line of a terminal, again. */
function overwrite(line: string): void {
  process.stdout.write(`\r\x1b[2K${line}`);
}

function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

// npm run demo: a town of driving vehicles in a service of its own, until Ctrl-C.
const outcome = await demo();
if (!outcome.ok) {
  complain(outcome.error);
  process.exitCode = 1;
}
