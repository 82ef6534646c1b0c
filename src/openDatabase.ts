import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import { startEmbedded } from './postgres/embedded/embedded.ts';
import { errorFields, type Unavailability, unavailability } from './postgres/sqlErrors.ts';
import { loadSecrets } from './secrets.ts';
import type { Teardown } from './teardown.ts';

/** Longer than Postgres is given to end by itself (store/embedded/watchdog.ts). */
const EMBEDDED_STOP_LIMIT_MS = 40_000;

/** The configured Postgres, or the embedded one, started for this service; `failed` settles when that one ends. */
export async function openDatabase(
  config: Config,
  log: Logger,
  teardown: Teardown,
): Promise<{ url: string; failed: Promise<Error> }> {
  if (config.databaseUrl !== null)
    return { url: config.databaseUrl, failed: new Promise<Error>(() => undefined) };
  const embedded = await startEmbedded({
    dataDir: config.dataDir,
    log: (message, fields = {}) => log.info(fields, message),
  });
  teardown.add(() => embedded.stop(), EMBEDDED_STOP_LIMIT_MS);
  const failed = new Promise<Error>((resolve) => {
    void embedded.exited.then((error) => {
      if (error !== null) resolve(error);
    });
  });
  return { url: embedded.url, failed };
}

const RETRY_MS = 250;

/**
 * The result of `begin`, which is called again while Postgres cannot be asked, for `limitMs` at most. Each reason is
 * logged once. Rejects at once with any other error, such as a wrong password.
 */
export async function whenAvailable<T>(
  begin: () => Promise<T>,
  { limitMs, log }: { limitMs: number; log: Pick<Logger, 'warn'> },
): Promise<T> {
  const untilMs = performance.now() + limitMs;
  let said: Unavailability | null = null;
  for (;;) {
    try {
      return await begin();
    } catch (error) {
      const reason = unavailability(error);
      if (reason === null || performance.now() + RETRY_MS > untilMs) throw error;
      if (reason !== said)
        log.warn({ ...errorFields(error), limit_seconds: limitMs / 1_000 }, 'waiting for Postgres');
      said = reason;
      await sleep(RETRY_MS);
    }
  }
}

/** What was configured, else what was generated and is kept in the data folder. */
export async function secretsOf(
  config: Config,
): Promise<{ tokens: readonly string[]; generatedToken: string | null; secretsKey: Buffer }> {
  const { ingestTokens: tokens, secretsKey } = config;
  if (tokens !== null && secretsKey !== null) return { tokens, generatedToken: null, secretsKey };
  const kept = await loadSecrets(config.dataDir);
  if (!kept.ok) throw new Error(kept.error);
  return {
    tokens: tokens ?? [kept.value.ingestToken],
    generatedToken: tokens === null ? kept.value.ingestToken : null,
    secretsKey: secretsKey ?? kept.value.secretsKey,
  };
}
