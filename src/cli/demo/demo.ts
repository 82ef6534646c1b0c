import { createServer } from 'node:net';
import { join } from 'node:path';
import { destination, pino } from 'pino';
import { type Config, type Env, readConfig } from '../../config.ts';
import { invariant } from '../../lib/invariant.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { DataDirInUseError } from '../../postgres/embedded/embedded.ts';
import { listenerUrl, shellWord, tokenPlace } from '../../readyText.ts';
import { type Service, startService } from '../../wiring.ts';
import { interruption } from '../interruption.ts';
import { DEMO_EMAIL, registerDemo } from './demoTenant.ts';
import { type DemoTown, openTown, VEHICLES } from './demoTown.ts';

const PROGRESS_MS = 1_000;

// npm run demo: a town of driving vehicles in a service of its own, until Ctrl-C.
const interrupted = interruption(() => print('\nStopping.'));

const FOLDER = 'demo';
const PORTS = { PORT: '3000', INGEST_PORT: '3001' };

/** Places of the demo, of three kinds. Named by external ids, so that every run finds those of the one before. */
const AREAS = [
  {
    externalId: 'demo-colosseum',
    body: { name: 'Colosseum', type: 'circle', center: { lat: 41.8902, lng: 12.4922 }, radius_m: 400 },
  },
  {
    externalId: 'demo-old-town',
    body: {
      name: 'Old town',
      type: 'polygon',
      color: '#d97706',
      dwell_seconds: 30,
      points: [
        { lat: 41.9109, lng: 12.4763 },
        { lat: 41.9029, lng: 12.4843 },
        { lat: 41.8955, lng: 12.4824 },
        { lat: 41.8898, lng: 12.4766 },
        { lat: 41.8968, lng: 12.4687 },
        { lat: 41.9017, lng: 12.4665 },
      ],
    },
  },
  {
    externalId: 'demo-corso',
    body: {
      name: 'Via del Corso',
      type: 'polyline',
      color: '#16a34a',
      buffer_m: 40,
      points: [
        { lat: 41.9107, lng: 12.4764 },
        { lat: 41.9005, lng: 12.4802 },
        { lat: 41.8966, lng: 12.4822 },
      ],
    },
  },
];

const CONSOLE_PATH = '/console';
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
type PortName = keyof typeof PORTS;

/**
 * The configuration of the demo: the environment as the service reads it, but never a database or a Redis of
 * somebody's (always the embedded Postgres), in a folder of its own inside DATA_DIR, all roles, and only warnings
 * logged unless LOG_LEVEL says more. A port that is not set is the usual one, or a free one where that is taken.
 * The error lists everything that is wrong, one line each.
 */
export async function demoConfig(env: Env): Promise<Result<Config, string[]>> {
  const errors: string[] = [];
  const ports: Partial<Record<PortName, string>> = {};
  for (const [name, hostName] of [
    ['PORT', 'HOST'],
    ['INGEST_PORT', 'INGEST_HOST'],
  ] as const) {
    const host = env[hostName] || '127.0.0.1';
    const wanted = env[name] || PORTS[name];
    const isFree =
      wanted === '0' || (!Object.values(ports).includes(wanted) && (await isPortFree(Number(wanted), host)));
    if (!isFree && env[name]) {
      errors.push(`${name} ${wanted} is taken: set another, or leave it unset and the demo finds a free one`);
    }
    ports[name] = isFree ? wanted : '0';
  }
  const config = readConfig({
    ...env,
    ...ports,
    DATABASE_URL: undefined,
    REDIS_URL: undefined,
    ROLES: undefined,
    DATA_DIR: join(env['DATA_DIR'] || '.data', FOLDER),
    LOG_LEVEL: env['LOG_LEVEL'] || 'warn',
  });
  if (!config.ok) return config;
  return errors.length > 0 ? fail(errors) : config;
}

/** Whether this process could listen there. What is no port at all is left to readConfig to complain about. */
function isPortFree(port: number, host: string): Promise<boolean> {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return Promise.resolve(true);
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}

/** Puts the areas there and returns the id of the first, which the Colosseum is in. */
async function saveDemoAreas(api: string, key: string): Promise<Result<number, string>> {
  const ids: number[] = [];
  for (const { externalId, body } of AREAS) {
    const response = await fetch(`${api}/api/v3/areas/by-external-id/${externalId}`, {
      method: 'PUT',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) return fail(`the area ${body.name} cannot be saved: ${response.status} ${text}`);
    ids.push((JSON.parse(text) as { data: { id: number } }).data.id);
  }
  return ok(ids[0] as number);
}

/** What is said while Postgres starts. */
function startText(config: Config, env: Env): string {
  const ignored = ['DATABASE_URL', 'REDIS_URL'].filter((name) => env[name]);
  return [
    `Starting Postgres and the service in ${config.dataDir}, apart from the data of npm start.`,
    ...ignored.map((name) => `${name} is set and not used: the demo keeps to a database of its own.`),
  ].join('\n');
}

/** What is said when everything runs: how to ask, what may be asked, how to end. */
function welcomeText(
  config: Config,
  service: Service,
  { key, password, imei, areaId }: { key: string; password: string; imei: string; areaId: number },
): string {
  const api = apiUrl(config, service);
  const curl = (path: string) => `  curl -s -H "X-API-Key: ${key}" "${api}/api/v3${path}"`;
  return [
    '',
    'Vehicles drive through Rome, each sending its position every two seconds. Ask about them from another terminal:',
    '',
    'The three vehicles nearest to the Colosseum',
    curl('/devices/nearest?lat=41.8902&lng=12.4922&limit=3'),
    'Where one of them is now; ask again, and it has moved on',
    curl(`/devices/${imei}/location`),
    'What happened last: areas entered and left, ignition, parking, alarms',
    curl('/events?limit=5'),
    'Whether the Arch of Constantine is in the area around the Colosseum, and how far its edge is (negative: inside)',
    curl(`/areas/${areaId}/contains?lat=41.8898&lng=12.4906`),
    '',
    `Console  ${api}${CONSOLE_PATH}  (log in as ${DEMO_EMAIL} with ${password}, new in each run)`,
    `API key  ${key}  (new in each run)`,
    `Limits   ${limitsText(config)}`,
    `Ingest   ${listenerUrl(config.ingestHost, service.ingestPort)}, its token is ${tokenPlace(config)}`,
    `Manage   DATA_DIR=${shellWord(config.dataDir)} npm run -s fleet -- help`,
    '',
    'Ctrl-C ends the demo with everything it has started.',
    '',
  ].join('\n');
}

/** Where the public listener is reached from this machine. */
function apiUrl(config: Config, { port }: Service): string {
  invariant(port !== null, 'the demo has every role');
  return listenerUrl(config.host, port);
}

function endText(config: Config): string {
  return `Stopped. The next run goes on with what is in ${config.dataDir}; delete that folder to begin anew.`;
}

function limitsText({ rateLimits: { keyMinute, keyHour, ipMinute } }: Config): string {
  const limits = [
    keyMinute > 0 ? `${keyMinute} calls a minute per key` : '',
    keyHour > 0 ? `${keyHour} an hour per key` : '',
    ipMinute > 0 ? `${ipMinute} a minute per address` : '',
  ].filter((text) => text !== '');
  return limits.length === 0 ? 'none' : `${limits.join(', ')}; beyond that the answer is 429`;
}
