import { openWorker, type Worker } from '../worker.ts';
import type { PodQuestion, PodReply } from '../workers/webhookPod.ts';

/** One pod in a process of its own. */
export type PodWorker = Worker<PodQuestion, PodReply>;
export const openPod = (): PodWorker => openWorker('webhookPod');

/** Calls a route of webhooks. Returns `data` of the answer; throws unless it is 2xx. */
export async function callWebhooks(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body?: object,
): Promise<{ id: number }> {
  const response = await fetch(url, {
    method,
    headers: { ...headers, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`);
  return text === '' ? { id: 0 } : (JSON.parse(text) as { data: { id: number } }).data;
}
