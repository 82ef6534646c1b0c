import { destination, pino } from 'pino';
import { readConfig } from '../../src/config.ts';
import { type Service, startService } from '../../src/wiring.ts';

export const INGEST_TOKEN = 'token-of-the-bench';
export const SECRETS_KEY = Buffer.alloc(32, 7);

/** Starts the service in this process as it is deployed, but on free ports and with the limits off. */
export async function startBenchService(
  databaseUrl: string,
  redisUrl: string | null = null,
  others: Readonly<Record<string, string>> = {},
): Promise<Service> {
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
  return startService(
    config.value,
    pino({ level: config.value.logLevel }, destination({ fd: 2, sync: true })),
  );
}
