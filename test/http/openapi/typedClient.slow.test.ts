import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { CLIENT_PROGRAMS } from '../../support/http/clientPrograms.ts';
import { compile, generateClients } from '../../support/http/typedClient.ts';
import { type Pod, startPod } from '../../support/pod.ts';
import { adminOf } from '../../support/postgres/admin.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { skipWithoutTools } from '../../tools/tools.ts';

describe('clients generated from the description', { skip: skipWithoutTools() }, () => {
  let pod: Pod;
  let key: string;
  let folder: string;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    ({ key } = await admin.key('owner@example.com'));
    pod = await startPod(database.url);
    folder = await mkdtemp(join(tmpdir(), 'fleet-client-'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    const { text } = await pod.get('/api/v3/openapi.json');
    await generateClients(text, pod.api, folder);
  });

  /** What a program of the folder prints. */
  const run = async (file: string): Promise<unknown> => {
    const env = { BASE: pod.api, KEY: key };
    const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: folder, env });
    return JSON.parse(stdout);
  };

  after(async () => {
    await pod.stop();
    await rm(folder, { recursive: true });
  });

  test('import, list and an error: the clients of three generators compile strictly and get them', async (t) => {
    const files = CLIENT_PROGRAMS.map((_, n) => `program${n}.ts`);
    for (const [n, { text }] of CLIENT_PROGRAMS.entries())
      await writeFile(join(folder, `program${n}.ts`), text);
    assert.deepEqual(await compile(folder, files), []);
    for (const [n, { name }] of CLIENT_PROGRAMS.entries()) {
      await t.test(name, async () => {
        assert.deepEqual(await run(`program${n}.ts`), [1, 'errCoordinates', 250, 1, 'DEVICE_NOT_FOUND']);
      });
    }
  });
});
