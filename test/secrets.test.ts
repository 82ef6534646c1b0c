import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadSecrets } from '../src/secrets.ts';

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-secrets-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

test('secrets are made once and stay', async (t) => {
  const dataDir = join(await makeFolder(t), 'not', 'there', 'yet');
  const first = await loadSecrets(dataDir);
  assert.ok(first.ok);
  assert.match(first.value.ingestToken, /^[\w-]{32}$/);
  assert.equal(first.value.secretsKey.length, 32);
  assert.deepEqual(await loadSecrets(dataDir), first);
});

test('only their owner can read them, and nothing else is left behind', async (t) => {
  const dataDir = await makeFolder(t);
  await loadSecrets(dataDir);
  assert.deepEqual(await readdir(dataDir), ['secrets.json']);
  assert.equal((await stat(join(dataDir, 'secrets.json'))).mode & 0o777, 0o600);
});

test('callers at the same instant get the same secrets', async (t) => {
  const dataDir = await makeFolder(t);
  const all = await Promise.all(Array.from({ length: 20 }, () => loadSecrets(dataDir)));
  const tokens = new Set(all.map((secrets) => secrets.ok && secrets.value.ingestToken));
  assert.equal(tokens.size, 1);
  assert.deepEqual(await readdir(dataDir), ['secrets.json']);
});

test('folders do not share their secrets', async (t) => {
  const [one, other] = [await loadSecrets(await makeFolder(t)), await loadSecrets(await makeFolder(t))];
  assert.ok(one.ok && other.ok);
  assert.notEqual(one.value.ingestToken, other.value.ingestToken);
  assert.notDeepEqual(one.value.secretsKey, other.value.secretsKey);
});

test('a damaged file is reported and never overwritten', async (t) => {
  for (const text of [
    '',
    '{',
    '[]',
    '{"ingest_token":"t","secrets_key":"c2hvcnQ="}',
    '{"ingest_token":"t"}',
  ]) {
    const dataDir = await makeFolder(t);
    const path = join(dataDir, 'secrets.json');
    await writeFile(path, text);
    const read = await loadSecrets(dataDir);
    assert.ok(!read.ok && read.error.startsWith(`${path} is damaged`), text);
    assert.equal(await readFile(path, 'utf8'), text);
  }
});
