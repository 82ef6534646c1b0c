import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { childEnv } from '../support/childEnv.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { PROJECT, serviceEnv, startProcess } from '../support/service.ts';

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

const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(NAMING)}`;
const OPEN_TRACES = join(PROJECT, 'src', 'traces', 'openTraces.ts');
const ofSdk = (lines: readonly string[]): string[] =>
  lines.filter((line) => /\/@opentelemetry\/(?!api\/)/.test(line));

test('the SDK is loaded with the module that sends traces, and not by a pod that sends none', async (t) => {
  const { stderr } = await promisify(execFile)(process.execPath, [OPEN_TRACES], {
    env: childEnv({ NODE_OPTIONS }),
  });
  assert.ok(ofSdk(stderr.split('\n')).length > 0);

  const { url } = await createDatabase(t);
  const traced = { OTEL_SERVICE_NAME: 'named', OTEL_TRACES_SAMPLER: 'always_on' };
  const { child, listening, ended, errors } = startProcess(t, {
    ...serviceEnv(url),
    NODE_OPTIONS,
    ...traced,
  });
  await listening;
  child.kill('SIGTERM');
  await ended;
  assert.ok(
    errors.some((line) => line.startsWith('loads ') && line.endsWith('/src/wiring.ts')),
    'the service is seen to be loaded',
  );
  assert.deepEqual(ofSdk(errors), []);
});
