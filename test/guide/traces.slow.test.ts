import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findFreePort } from '../support/ports.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { serviceEnv, startProcess } from '../support/service.ts';
import { waitFor } from '../support/waitFor.ts';
import { guideBlock } from './guide.ts';
import { findProgram } from './programs.ts';
import { paste } from './shell.ts';

const skip = findProgram('bash') === null && 'there is no bash on this machine';

test('the program that prints spans prints those of a call, once the service has stopped at the latest', {
  skip,
}, async (t) => {
  const { url } = await createDatabase(t);
  const folder = await mkdtemp(join(tmpdir(), 'fleet-traces-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const port = await findFreePort();
  await writeFile(join(folder, 'traces.mjs'), guideBlock('traces.mjs', { '4318': String(port) }));
  const printer = paste(t, `'${process.execPath}' traces.mjs`, folder, {});
  await waitFor(() =>
    fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: '{"resourceSpans":[]}' }).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  const service = startProcess(t, {
    ...serviceEnv(url),
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_TRACES_SAMPLER: 'always_on',
  });
  const { api } = await service.listening;
  const call = fetch(`${api}/api/v3/devices`, { headers: { Connection: 'close' } });
  assert.equal((await call).status, 403);
  service.child.kill('SIGTERM');
  assert.deepEqual(await service.ended, { code: 0, signal: null });
  await printer.said(/^[0-9a-f]{32} [0-9a-f]{16} in \w+ admission [\d.]+$/);
  await printer.said(/ GET \/api\/v3\/devices [\d.]+$/);
});
