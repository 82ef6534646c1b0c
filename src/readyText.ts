import { type Config, DEFAULT_DATA_DIR } from './config.ts';
import { VERSION } from './version.ts';

/** How a started service can be reached. */
export interface StartedService {
  /** Null without the role `api`. */
  readonly port: number | null;
  readonly ingestPort: number;
  /** Null when it was configured. */
  readonly generatedIngestToken: string | null;
}

/** What `npm start` prints in a terminal once it serves: where everything is, and what to do next. */
export function readyText(config: Config, service: StartedService): string {
  const { port, ingestPort, generatedIngestToken: token } = service;
  const ingest = listenerUrl(config.ingestHost, ingestPort);
  const api = port === null ? null : listenerUrl(config.host, port);
  return [
    '',
    `Fleet Tracking Service ${VERSION} is ready.`,
    '',
    ...(api === null
      ? []
      : [`  Console  ${api}/console`, `  API      ${api}/api/v3`, `  Docs     ${api}/api/v3/docs`]),
    ...(config.roles.has('ingest')
      ? [
          `  Ingest   ${ingest}/positions`,
          `  Token    ${token === null ? '' : `${token}, kept `}${tokenPlace(config)}; send it as X-Ingest-Token`,
        ]
      : []),
    `  Metrics  ${ingest}/metrics`,
    '',
    ...nextText(config),
    '',
    'Ctrl-C stops the service.',
    '',
  ].join('\n');
}

function nextText(config: Config): string[] {
  const fleet = `${settings(config)}npm run -s fleet --`;
  return [
    'Next, in another terminal: create an account with a password for the console (it is asked for), a key to call the',
    'API with, and a device. Then log in to the console.',
    '',
    `  ${fleet} account:create --email you@example.com --name You --password -`,
    `  ${fleet} key:create --email you@example.com --scopes all`,
    `  ${fleet} device:create --email you@example.com --imei 350000000000017`,
    '',
    `All commands: ${fleet} help. The guide begins in README.md.`,
  ];
}

/** What another terminal does not have in its environment. A URL may carry a password, so it is named and not shown. */
function settings({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl !== null) return 'DATABASE_URL=… ';
  return dataDir === DEFAULT_DATA_DIR ? '' : `DATA_DIR=${shellWord(dataDir)} `;
}

/** Where a listener is reached from this machine: an address to listen on everywhere is none to connect to. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/** The URL of a listener, for programs on this machine. */
export function listenerUrl(host: string, port: number): string {
  const reachable = reachableHost(host);
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** Where the token of the ingest listener is to be found. */
export function tokenPlace({ ingestTokens, dataDir }: Pick<Config, 'ingestTokens' | 'dataDir'>): string {
  return ingestTokens === null ? `in ${dataDir}/secrets.json` : 'the value of INGEST_TOKEN';
}

/** A word as a shell reads it back. */
export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
