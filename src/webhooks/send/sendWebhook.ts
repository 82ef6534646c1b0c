import type { CidrSet } from '../../access/cidrSet.ts';
import { validateWebhookUrl } from '../urlSafety.ts';
import type { ExchangeError } from './exchangeError.ts';
import { type DnsError, findTargets } from './findTargets.ts';
import { postOnce } from './postOnce.ts';
import type { ConnectionOwner, ReceiverConnections } from './receiverConnections.ts';
import { type Resolve, resolveHost } from './resolveHost.ts';

export interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text, sent in UTF-8. */
  readonly body: string;
  /** The endpoint, whose kept connection may serve. */
  readonly owner: ConnectionOwner;
  /** Addresses that are allowed although they are not public. */
  readonly allowNets: CidrSet;
  /** From DNS to the last byte of the answer. */
  readonly deadlineMs?: number;
  /** By performance.now(). Nothing is sent later, even if the process stalls: the result is `unsent`. */
  readonly sendUntilMs?: number;
  readonly resolve?: Resolve;
  /** Certificates (PEM) trusted instead of the well-known ones. */
  readonly ca?: string;
}

/** A short code for why there was no answer. */
export type SendError = ExchangeError | DnsError;

/** `durationMs` is whole milliseconds from DNS to the end; any status code counts as answered. */
export type SendResult =
  | { readonly kind: 'answered'; readonly statusCode: number; readonly durationMs: number }
  | { readonly kind: 'failed'; readonly error: SendError; readonly durationMs: number }
  | { readonly kind: 'unsafe' | 'unsent' };

const DEADLINE_MS = 10_000;

/**
 * One attempt: validates the URL again, resolves its host once, checks every address, and sends one POST to one of
 * them. `unsafe`: no packet was sent to the host. `unsent`: the process stalled, and the request was not sent. Never rejects.
 */
export async function sendWebhook(
  connections: ReceiverConnections,
  request: WebhookRequest,
): Promise<SendResult> {
  const { headers, body, owner, allowNets, deadlineMs = DEADLINE_MS, resolve = resolveHost, ca } = request;
  const { sendUntilMs = Number.POSITIVE_INFINITY } = request;
  const validated = validateWebhookUrl(request.url, allowNets);
  if (!validated.ok) return { kind: 'unsafe' };
  const url = new URL(validated.value);
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
            connections,
            owner,
            ca,
            signal,
            untilMs: Math.min(startedMs + deadlineMs, sendUntilMs),
          });
    if (outcome.kind === 'unsent') return outcome;
    return { ...outcome, durationMs: Math.round(performance.now() - startedMs) };
  } finally {
    clearTimeout(timer);
  }
}
