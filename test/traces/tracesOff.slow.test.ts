import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDatabase } from '../support/postgres/postgres.ts';
import { serviceEnv, startProcess } from '../support/service.ts';
import { startCollector } from '../support/traces/collector.ts';

/**
 * Names those files that a process loads in its stderr which the test looks for: a pipe that nobody has read yet holds
 * some 64 kB.
 */
const NAMING = `import { registerHooks } from 'node:module';
import { writeSync } from 'node:fs';
registerHooks({
  load: (url, context, next) => {
    if (/opentelemetry|wiring/.test(url)) writeSync(2, 'loads ' + url + '\\n');
    return next(url, context);
  },
});`;

test('the SDK is loaded by a pod that sends traces, and by no other', async (t) => {
  const { url } = await createDatabase(t);
  const collector = await startCollector(t);
  const loadedWith = async (env: Readonly<Record<string, string>>): Promise<string[]> => {
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(NAMING)}`;
    const { child, listening, ended, errors } = startProcess(t, { ...serviceEnv(url), NODE_OPTIONS, ...env });
    await listening;
    child.kill('SIGTERM');
    await ended;
    assert.ok(
      errors.some((line) => line.startsWith('loads ') && line.endsWith('/src/wiring.ts')),
      'the service is seen to be loaded',
    );
    return errors.filter((line) => /\/@opentelemetry\/(?!api\/)/.test(line));
  };
  assert.deepEqual(await loadedWith({ OTEL_SERVICE_NAME: 'named', OTEL_TRACES_SAMPLER: 'always_on' }), []);
  assert.ok((await loadedWith({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })).length > 0);
});
