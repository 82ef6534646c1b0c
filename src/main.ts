import { pino } from 'pino';
import { readConfig } from './config.ts';
import { type Service, startService } from './wiring.ts';

/** A stop that hangs in spite of all limits is cut off; what is embedded ends with this process. */
const STOP_LIMIT_MS = 50_000;
/** Connections without a request are kept this long: longer than it takes a proxy to send on one, or to leave it. */
const IDLE_MS = 1_000;
/** A stop while starting lets the start finish for this long: loading memory has nothing that could be lost. */
const START_LIMIT_MS = 5_000;

const config = readConfig(process.env);
if (!config.ok) {
  for (const problem of config.error) console.error(problem);
  process.exit(1);
}

const log = pino({ level: config.value.logLevel });
let stopping: Promise<void> | null = null;
const starting = startService(config.value, log);

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(signal, 0));

try {
  const service = await starting;
  if (stopping === null) announce(service);
} catch (error) {
  log.fatal({ err: error }, error instanceof Error ? error.message : 'the service cannot start');
  process.exitCode = 1;
}

/** Stops once, whoever asks how often, also while the service is still starting. */
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
    () => clearTimeout(startLimit), // it could not start, which was said
  );
}

function announce({ generatedIngestToken, port, ingestPort, failed }: Service): void {
  if (generatedIngestToken !== null) {
    // For the person who started this, not for the log: it goes where logs are not collected from.
    console.error(
      `Ingest token (generated, kept in ${config.ok ? config.value.dataDir : ''}): ${generatedIngestToken}`,
    );
  }
  log.info({ port, ingest_port: ingestPort }, 'listening');
  void failed.then((error) => {
    log.fatal({ err: error }, 'the embedded Postgres ended; the service cannot go on');
    stop('embedded Postgres ended', 1);
  });
}
