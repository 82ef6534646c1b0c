import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from './lib/errors.ts';
import { parseJsonText } from './lib/parseText.ts';
import { fail, ok, type Result } from './lib/result.ts';

/** What a service without outside configuration makes for itself, once. */
export interface Secrets {
  readonly ingestToken: string;
  /** 32 bytes. */
  readonly secretsKey: Buffer;
}

const FILE_NAME = 'secrets.json';
const OWNER_ONLY = 0o600;
const TOKEN_BYTES = 24;
const KEY_BYTES = 32;

/**
 * The secrets kept in `dataDir`, made at the first call. Several processes may call this at once: all get the same.
 * The error is one line for the operator: a file that cannot be read as secrets is never overwritten, since webhook
 * secrets encrypted with its key would be lost.
 */
export async function loadSecrets(dataDir: string): Promise<Result<Secrets, string>> {
  const path = join(dataDir, FILE_NAME);
  const text = (await readIfThere(path)) ?? (await create(dataDir, path));
  const secrets = parseSecrets(text);
  return secrets === null
    ? fail(`${path} is damaged: put back a copy, or delete it and rotate every webhook secret`)
    : ok(secrets);
}

function parseSecrets(text: string): Secrets | null {
  const value = parseJsonText(text);
  if (typeof value !== 'object' || value === null) return null;
  const { ingest_token: ingestToken, secrets_key: key } = value as Record<string, unknown>;
  if (typeof ingestToken !== 'string' || ingestToken === '' || typeof key !== 'string') return null;
  const secretsKey = Buffer.from(key, 'base64');
  return secretsKey.length === KEY_BYTES ? { ingestToken, secretsKey } : null;
}

/** Written aside and linked into place: readers see the whole file or none, and of two writers the first wins. */
async function create(dataDir: string, path: string): Promise<string> {
  await mkdir(dataDir, { recursive: true });
  const aside = `${path}.${randomBytes(6).toString('hex')}`;
  const text = `${JSON.stringify({
    ingest_token: randomBytes(TOKEN_BYTES).toString('base64url'),
    secrets_key: randomBytes(KEY_BYTES).toString('base64'),
  })}\n`;
  try {
    const file = await open(aside, 'wx', OWNER_ONLY);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(aside, path);
    return text;
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
    return await readFile(path, 'utf8');
  } finally {
    await rm(aside, { force: true });
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}
