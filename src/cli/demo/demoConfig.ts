import { join } from 'node:path';
import { type Config, type Env, readConfig } from '../../config.ts';
import { invariant } from '../../lib/errors.ts';
import { fail, type Result } from '../../lib/result.ts';
import { isPortFree } from '../../postgres/embedded/server.ts';
import { listenerUrl, shellWord, tokenPlace } from '../../readyText.ts';
import type { Service } from '../../wiring.ts';
import { DEMO_EMAIL } from './demoTenant.ts';

const CONSOLE_PATH = '/console';
const FOLDER = 'demo';
const PORTS = { PORT: '3000', INGEST_PORT: '3001' };

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
      wanted === '0' || (!Object.values(ports).includes(wanted) && (await isUsable(Number(wanted), host)));
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

/** Also an invalid port: readConfig reports it. */
async function isUsable(port: number, host: string): Promise<boolean> {
  const isValid = Number.isInteger(port) && port >= 0 && port <= 65_535;
  return !isValid || isPortFree(port, host);
}

/** What is said while Postgres starts. */
export function startText(config: Config, env: Env): string {
  const ignored = ['DATABASE_URL', 'REDIS_URL'].filter((name) => env[name]);
  return [
    `Starting Postgres and the service in ${config.dataDir}, apart from the data of npm start.`,
    ...ignored.map((name) => `${name} is set and not used: the demo keeps to a database of its own.`),
  ].join('\n');
}

/** What is said when everything runs: how to ask, what may be asked, how to end. */
export function welcomeText(
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
export function apiUrl(config: Config, { port }: Service): string {
  invariant(port !== null, 'the demo has every role');
  return listenerUrl(config.host, port);
}

export function endText(config: Config): string {
  return `Stopped. The next run goes on with what is in ${config.dataDir}; delete that folder to start over.`;
}

function limitsText({ rateLimits: { keyMinute, keyHour, ipMinute } }: Config): string {
  const limits = [
    keyMinute > 0 ? `${keyMinute} calls a minute per key` : '',
    keyHour > 0 ? `${keyHour} an hour per key` : '',
    ipMinute > 0 ? `${ipMinute} a minute per address` : '',
  ].filter((text) => text !== '');
  return limits.length === 0 ? 'none' : `${limits.join(', ')}; beyond that the answer is 429`;
}
