import type { CidrSet } from '../access/cidrSet.ts';
import { judgeWebhookUrl } from '../delivery/urlSafety.ts';
import type { ExchangeError } from './exchangeError.ts';
import { type DnsError, findTargets } from './findTargets.ts';
import { postOnce } from './postOnce.ts';
import { type Resolve, resolveHost } from './resolveHost.ts';

export interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text, sent in UTF-8. */
  readonly body: string;
  /** Addresses exempt from the refusal of what is not public. */
  readonly allowNets: CidrSet;
  /** From DNS to the last byte of the answer. */
  readonly deadlineMs?: number;
  readonly resolve?: Resolve;
  /** Certificates (PEM) trusted instead of the well-known ones. */
  readonly ca?: string;
}

/** A short code for what prevented an answer. */
export type SendError = ExchangeError | DnsError;

/** `durationMs` is whole milliseconds from DNS to the end; any status code counts as answered. */
export type SendResult =
  | { readonly kind: 'answered'; readonly statusCode: number; readonly durationMs: number }
  | { readonly kind: 'failed'; readonly error: SendError; readonly durationMs: number }
  | { readonly kind: 'unsafe' };

const DEADLINE_MS = 10_000;

/**
 * One attempt: the URL is judged again, its host resolved once, every address checked, and one POST sent to an
 * address that was checked. `unsafe` means that no packet left for the host. Never rejects.
 */
export async function sendWebhook(request: WebhookRequest): Promise<SendResult> {
  const { headers, body, allowNets, deadlineMs = DEADLINE_MS, resolve = resolveHost, ca } = request;
  const judged = judgeWebhookUrl(request.url, allowNets);
  if (!judged.ok) return { kind: 'unsafe' };
  const url = new URL(judged.value);
  const startedMs = performance.now();
  const deadline = new AbortController();
  const { signal } = deadline;
  const timer = setTimeout(() => deadline.abort(), deadlineMs);
  try {
    const targets = await findTargets(url.hostname, allowNets, resolve, signal);
    if (targets.kind === 'unsafe') return targets;
    const outcome =
      targets.kind === 'failed'
        ? targets
        : await postOnce({
            url,
            headers,
            body,
            addresses: targets.addresses,
            ca,
            signal,
            untilMs: startedMs + deadlineMs,
          });
    return { ...outcome, durationMs: Math.round(performance.now() - startedMs) };
  } finally {
    clearTimeout(timer);
  }
}
