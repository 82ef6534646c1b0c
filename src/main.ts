import { destination, type Logger, pino } from 'pino';
import { type Config, readConfig } from './config.ts';
import { readyText } from './readyText.ts';
import { type Service, startService } from './wiring.ts';

/** A stop that hangs in spite of all limits is cut off; what is embedded ends with this process. */
const STOP_LIMIT_MS = 50_000;
/** Connections without a request are kept this long: longer than it takes a proxy to send on one, or to leave it. */
const IDLE_MS = 1_000;
/** A stop while starting lets the start finish for this long: loading memory has nothing that could be lost. */
const START_LIMIT_MS = 5_000;

const read = readConfig(process.env);
if (!read.ok) {
  for (const line of read.error) console.error(line);
  process.exit(1);
}

const config = read.value;
const inTerminal = process.stdout.isTTY;
const log = await openLog(config.logLevel, inTerminal);
let stopping: Promise<void> | null = null;
const starting = startService(config, log);

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(signal, 0));

try {
  const service = await starting;
  if (stopping === null) announce(service);
} catch (error) {
  reportFailure(error instanceof Error ? error.message : 'the service cannot start', error);
  process.exit(1); // a connection to somebody who is silent would keep the process alive
}

/** Stops the service, even while it is still starting. Further calls have no effect. */
function stop(reason: string, exitCode: number): void {
  if (stopping !== null) return;
  process.exitCode = exitCode;
  log.info({ reason }, 'stopping');
  const startLimit = setTimeout(() => process.exit(exitCode), START_LIMIT_MS);
  stopping = starting.then(
    async (service) => {
      clearTimeout(startLimit);
      setTimeout(() => {
        log.error({}, 'the stop took too long');
        process.exit(1);
      }, STOP_LIMIT_MS);
      await service.stop(IDLE_MS);
      log.info({}, 'stopped');
      process.exit(exitCode);
    },
    () => undefined, // it could not start: that is reported, and the process ends
  );
}

function announce(service: Service): void {
  log.info({ port: service.port, ingest_port: service.ingestPort }, 'listening');
  if (inTerminal) console.log(readyText(config, service));
  else if (service.generatedIngestToken !== null) printToken(config, service.generatedIngestToken);
  void service.failed.then((error) => {
    reportFailure('the embedded Postgres ended; the service cannot go on', error);
    stop('embedded Postgres ended', 1);
  });
}

/** For the person who started this, not for the log: it goes where logs are not collected from. */
function printToken({ dataDir }: Config, token: string): void {
  pino(destination({ fd: 2, sync: true })).info(
    { ingest_token: token, kept_in: `${dataDir}/secrets.json` },
    'ingest token, generated',
  );
}

/** A person reads one line; LOG_LEVEL=debug adds the rest. */
function reportFailure(message: string, error: unknown): void {
  log.fatal(inTerminal ? {} : { err: error }, message);
  if (inTerminal) log.debug({ err: error }, 'the error in full');
}

/** The log of the service on stdout: lines to read in a terminal, elsewhere one JSON object a line. */
async function openLog(level: Config['logLevel'], inTerminal: boolean): Promise<Logger> {
  if (!inTerminal) return pino({ level });
  const { default: pretty } = await import('pino-pretty'); // loaded where there is somebody to read it
  return pino(
    { level },
    pretty({ sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss', ignore: 'pid,hostname' }),
  );
}
