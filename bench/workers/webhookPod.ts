import type { Service } from '../../src/wiring.ts';
import { startBenchService } from '../service.ts';
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
  if (question.kind === 'start') {
    const { databaseUrl, redisUrl } = question;
    service = await startBenchService(databaseUrl, redisUrl, { WEBHOOK_ALLOW_NETS: '127.0.0.0/8' });
  }
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
