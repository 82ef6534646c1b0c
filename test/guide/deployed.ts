import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Env, readConfig, VARIABLES } from '../../src/config.ts';
import { PROJECT } from './guide.ts';
import { findProgram } from './programs.ts';

// What files of deploy/ are held against: the code, and programs that read them.

export const DEPLOY = join(PROJECT, 'deploy');

/** For the option `skip` of a test that needs a program: that there is none, or false. */
export const skipWithout = (name: string): string | false =>
  findProgram(name) === null && `there is no ${name} on this machine`;

/** The ports of the image. */
export const PORT = 3000;
export const INGEST_PORT = 3001;

/** The number that a constant of the code has. */
function constant(path: string, name: string): number {
  const [, value] =
    new RegExp(`^const ${name} = ([\\d_]+);`, 'm').exec(readFileSync(join(PROJECT, path), 'utf8')) ?? [];
  assert.ok(value !== undefined, `${path} has ${name}`);
  return Number(value.replaceAll('_', ''));
}
/** No stop takes longer. */
export const STOP_SECONDS = constant('src/main.ts', 'STOP_LIMIT_MS') / 1_000;

/** What an operator puts in place of names: what is wrong with a configuration then, is wrong with the file. */
export const SECRETS: Readonly<Record<string, string>> = {
  POSTGRES_PASSWORD: 'b5e1f0c2',
  GRAFANA_PASSWORD: 'c9d2a1e7',
  INGEST_TOKEN: '0123456789abcdef0123456789abcdef',
  SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
  DATABASE_URL: 'postgres://fleet:b5e1f0c2@postgres.example.com:5432/fleet',
  DATABASE_REPLICA_URL: 'postgres://fleet:b5e1f0c2@replica.example.com:5432/fleet',
  REDIS_URL: 'redis://redis.example.com:6379',
};

/** Known variables, with values that a pod starts with, on the ports that the image opens. */
export function assertConfigures(env: Env, what: string): void {
  for (const name of Object.keys(env)) assert.ok(name in VARIABLES, `${what}: ${name} is a variable`);
  const config = readConfig(env);
  assert.ok(config.ok, `${what}: ${config.ok ? '' : config.error.join('; ')}`);
  assert.deepEqual([config.value.port, config.value.ingestPort], [PORT, INGEST_PORT]);
  assert.ok(config.value.databaseUrl !== null && config.value.redisUrl !== null, what);
}
