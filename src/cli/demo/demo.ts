import { destination, pino } from 'pino';
import type { Config } from '../../config.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { DataDirInUseError } from '../../postgres/embedded/embedded.ts';
import { type Service, startService } from '../../wiring.ts';
import { interruption } from '../input.ts';
import { apiUrl, demoConfig, endText, startText, welcomeText } from './demoConfig.ts';
import { registerDemo, saveDemoAreas } from './demoTenant.ts';
import { type DemoTown, openTown, VEHICLES } from './demoTown.ts';

const PROGRESS_MS = 1_000;

// npm run demo: a town of driving vehicles in a service of its own, until Ctrl-C.
const interrupted = interruption(() => print('\nStopping.'));
const outcome = await demo();
if (!outcome.ok) {
  complain(outcome.error);
  process.exitCode = 1;
}

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
  const town = openTown(config, service, tenant.value.imeis);
  try {
    const { key, password } = tenant.value;
    const areaId = await saveDemoAreas(apiUrl(config, service), key);
    if (!areaId.ok) return areaId;
    const arrived = await town.arrive();
    if (!arrived.ok || interrupted.aborted) return arrived;
    print(welcomeText(config, service, { key, password, imei: town.fastestImei(), areaId: areaId.value }));
    return await driveUntilEnd(town, service);
  } finally {
    town.close();
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
  const driven = await town.drive(AbortSignal.any([interrupted, lost.signal]), complain);
  clearInterval(progress);
  if (progress !== undefined) overwrite('');
  return reason === null ? driven : fail((reason as Error).message);
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
