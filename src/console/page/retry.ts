/** After this a call that was refused for a time is made again. */
export const AGAIN_MS = 30_000;
/** Unreachable, over a limit, or without the database: all of them pass. */
const PASSING = [0, 429, 503];

/** Whether a call was refused for a time only. */
export function isRefusedForNow(
  reply: { readonly ok: true } | { readonly ok: false; readonly status: number },
): boolean {
  return !reply.ok && PASSING.includes(reply.status);
}

/** Settles after the time, or at once when it is aborted. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * When the limit that a message names has ended at the latest (epoch milliseconds), if it refused a call at `refusedAtMs`:
 * its window began before that, and is a minute or an hour long. Null for a message about anything else. By contract
 * the API does not say when a limit ends, so the message is the only source.
 */
export function limitEndsByMs(message: string, refusedAtMs: number): number | null {
  if (/ per minute$/.test(message)) return refusedAtMs + MINUTE_MS;
  return / per hour$/.test(message) ? refusedAtMs + HOUR_MS : null;
}
