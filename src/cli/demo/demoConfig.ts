import { createServer } from 'node:net';
import { join } from 'node:path';
import { type Config, type Env, readConfig } from '../../config.ts';
import { fail, type Result } from '../../lib/result.ts';

const FOLDER = 'demo';
const PORTS = { PORT: '3000', INGEST_PORT: '3001' };

type PortName = keyof typeof PORTS;

/**
 * The configuration of the demo: the environment as the service reads it, but never a database or a Redis of
 * somebody's (always the embedded Postgres), in a folder of its own inside DATA_DIR, all roles, and only warnings
 * logged unless LOG_LEVEL says more. A port that is not set is the usual one, or a free one where that is taken.
 * The error lists everything that is wrong, one line each.
 */
export async function demoConfig(env: Env): Promise<Result<Config, string[]>> {
  const errors: string[] = [];
  const ports: Partial<Record<PortName, string>> = {};
  for (const [name, hostName] of [
    ['PORT', 'HOST'],
    ['INGEST_PORT', 'INGEST_HOST'],
  ] as const) {
    const host = env[hostName] || '127.0.0.1';
    const wanted = env[name] || PORTS[name];
    const isFree =
      wanted === '0' || (!Object.values(ports).includes(wanted) && (await isPortFree(Number(wanted), host)));
    if (!isFree && env[name]) {
      errors.push(`${name} ${wanted} is taken: set another, or leave it unset and the demo finds a free one`);
    }
    ports[name] = isFree ? wanted : '0';
  }
  const config = readConfig({
    ...env,
    ...ports,
    DATABASE_URL: undefined,
    REDIS_URL: undefined,
    ROLES: undefined,
    DATA_DIR: join(env['DATA_DIR'] || '.data', FOLDER),
    LOG_LEVEL: env['LOG_LEVEL'] || 'warn',
  });
  if (!config.ok) return config;
  return errors.length > 0 ? fail(errors) : config;
}

/** Whether this process could listen there. True for an invalid port, which readConfig reports. */
function isPortFree(port: number, host: string): Promise<boolean> {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return Promise.resolve(true);
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
