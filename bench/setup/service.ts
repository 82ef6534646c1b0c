import { destination, pino } from 'pino';
import { readConfig } from '../../src/config.ts';
import { startService } from '../../src/wiring.ts';
import { INGEST_TOKEN } from './points.ts';

export const SECRETS_KEY = Buffer.alloc(32, 7);

export interface BenchService extends AsyncDisposable {
  readonly url: string;
  readonly ingestUrl: string;
}

/** Starts the service in this process as it is deployed, but on free ports and with the limits off. */
export async function startBenchService(
  databaseUrl: string,
  redisUrl: string | null = null,
  others: Readonly<Record<string, string>> = {},
): Promise<BenchService> {
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl ?? '',
    INGEST_TOKEN,
    SECRETS_KEY: SECRETS_KEY.toString('base64'),
    PORT: '0',
    INGEST_PORT: '0',
    RATE_LIMIT_KEY_MINUTE: '0',
    RATE_LIMIT_KEY_HOUR: '0',
    RATE_LIMIT_IP_MINUTE: '0',
    LOG_LEVEL: 'warn',
    ...others,
  });
  if (!config.ok) throw new Error(config.error.join('; '));
  const log = pino({ level: config.value.logLevel }, destination({ fd: 2, sync: true }));
  const service = await startService(config.value, log);
  return {
    url: `http://127.0.0.1:${service.port}`,
    ingestUrl: `http://127.0.0.1:${service.ingestPort}`,
    [Symbol.asyncDispose]: () => service.stop(),
  };
}
