import type { Config, Env } from '../../config.ts';
import { invariant } from '../../lib/invariant.ts';
import { listenerUrl, shellWord, tokenPlace } from '../../readyText.ts';
import type { Service } from '../../wiring.ts';
import { DEMO_EMAIL } from './demoTenant.ts';

const CONSOLE_PATH = '/console';

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
