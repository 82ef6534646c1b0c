import { destination, pino } from 'pino';
import { readConfig } from '../../src/config.ts';
import { type Service, startService } from '../../src/wiring.ts';
import { INGEST_TOKEN } from '../service.ts';
import { answerQuestions } from '../worker.ts';

export type PodQuestion =
  | { readonly kind: 'start'; readonly databaseUrl: string; readonly redisUrl: string | null }
  | { readonly kind: 'usage' }
  | { readonly kind: 'stop' };

export interface PodReply {
  /** 0 while nothing is served. */
  readonly port: number;
  readonly ingestPort: number;
  /** Processor time of this process so far. */
  readonly cpuUs: number;
  readonly rssMb: number;
}

// A worker: one pod as it is deployed, that may send to the loopback. Which certificates it trusts beyond the
// well-known ones is decided by NODE_EXTRA_CA_CERTS, before this process starts.
let service: Service | null = null;
answerQuestions(async (question: PodQuestion): Promise<PodReply> => {
  if (question.kind === 'start') service = await startPod(question.databaseUrl, question.redisUrl);
  if (question.kind === 'stop') {
    await service?.stop();
    service = null;
  }
  const { user, system } = process.cpuUsage();
  return {
    port: service?.port ?? 0,
    ingestPort: service?.ingestPort ?? 0,
    cpuUs: user + system,
    rssMb: process.memoryUsage.rss() / 2 ** 20,
  };
});

function startPod(databaseUrl: string, redisUrl: string | null): Promise<Service> {
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl ?? '',
    INGEST_TOKEN,
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    PORT: '0',
    INGEST_PORT: '0',
    RATE_LIMIT_KEY_MINUTE: '0',
    RATE_LIMIT_KEY_HOUR: '0',
    RATE_LIMIT_IP_MINUTE: '0',
    WEBHOOK_ALLOW_NETS: '127.0.0.0/8',
    LOG_LEVEL: 'warn',
  });
  if (!config.ok) throw new Error(config.error.join('; '));
  return startService(
    config.value,
    pino({ level: config.value.logLevel }, destination({ fd: 2, sync: true })),
  );
}
