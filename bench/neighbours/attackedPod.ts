import { openWorker, type Worker } from '../worker.ts';
import type { PodQuestion, PodReply } from '../workers/webhookPod.ts';

/** A pod as it is deployed: behind a proxy, with its limits on. */
export interface AttackedPod {
  readonly worker: Worker<PodQuestion, PodReply>;
  readonly apiUrl: string;
  readonly ingestUrl: string;
  readonly databaseUrl: string;
}

const VARIABLES = {
  TRUST_PROXY: '127.0.0.0/8',
  RATE_LIMIT_KEY_MINUTE: '120',
  RATE_LIMIT_KEY_HOUR: '1000',
  RATE_LIMIT_IP_MINUTE: '120',
};

export async function startAttackedPod(databaseUrl: string): Promise<AttackedPod> {
  const worker = openWorker<PodQuestion, PodReply>(new URL('../workers/webhookPod.ts', import.meta.url));
  try {
    const start = { kind: 'start', databaseUrl, redisUrl: null, variables: VARIABLES } as const;
    const { port, ingestPort } = await worker.ask(start);
    const [apiUrl, ingestUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${ingestPort}`];
    return { worker, apiUrl, ingestUrl, databaseUrl };
  } catch (error) {
    await worker.close();
    throw error;
  }
}

/** Kills it, since a clean stop would first finish what the attack left behind. */
export async function endAttackedPod({ worker }: AttackedPod): Promise<void> {
  worker.process.kill('SIGKILL');
  await worker.close();
}
