import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describedApi } from '../../support/http/describedApi.ts';
import { IS_TORTURE } from '../../support/torture.ts';
import { importTool, resolveTool, skipWithoutTools } from '../../tools/tools.ts';

/** What is used of @stoplight/spectral-core. */
interface SpectralCore {
  readonly Spectral: new () => {
    setRuleset(rules: object): void;
    run(document: object): Promise<{ readonly code: string | number; readonly message: string }[]>;
  };
}

/** The API document fixes these paths: to a linter, "by-external-id" could be the id of an area. */
const UNAVOIDABLE =
  /^no-ambiguous-paths: .* `\/api\/v3\/areas\/by-external-id\/\{externalId\}` and `\/api\/v3\/areas\/\{id\}\/\w+`\.$/;

/** What `redocly lint --extends=recommended` finds, "rule: message". */
async function lintWithRedocly(t: TestContext, document: object): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-lint-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(document));
  const redocly = fileURLToPath(resolveTool('@redocly/cli/bin/cli.js'));
  const stdout = await new Promise<string>((resolve) => {
    execFile(
      process.execPath,
      [redocly, 'lint', '--extends=recommended', '--format=json', 'openapi.json'],
      // It would otherwise report its use, and look for a newer version of itself.
      { cwd: folder, env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } },
      (_error, stdout) => resolve(stdout), // it fails where it finds errors
    );
  });
  const { problems } = JSON.parse(stdout) as { problems: { ruleId: string; message: string }[] };
  return problems.map(({ ruleId, message }) => `${ruleId}: ${message}`);
}

/** What Spectral finds by the rules of `spectral:oas`, "rule: message". Redocly tries the examples of bodies, too. */
async function lintWithSpectral(document: object): Promise<string[]> {
  const core = await importTool<{ default: SpectralCore }>('@stoplight/spectral-core');
  const rules = await importTool<{ default: { oas: object } }>('@stoplight/spectral-rulesets');
  const spectral = new core.default.Spectral();
  spectral.setRuleset({
    extends: [[rules.default.oas, 'recommended']],
    ...(!IS_TORTURE && { rules: { 'oas3-valid-media-example': 'off' } }),
  });
  const results = await spectral.run(structuredClone(document));
  return results.map(({ code, message }) => `${code}: ${message}`);
}

describe('the description, as linters see it', { skip: skipWithoutTools() }, () => {
  test('Redocly finds nothing but paths that the API document fixes', async (t) => {
    const found = await lintWithRedocly(t, describedApi());
    assert.ok(found.length > 0, 'it looks');
    assert.deepEqual(
      found.filter((line) => !UNAVOIDABLE.test(line)),
      [],
    );
  });

  test('Spectral finds nothing', async () => {
    assert.deepEqual(await lintWithSpectral(describedApi()), []);
  });

  test('Spectral would find what is missing', async () => {
    const { servers: _, paths, components, ...rest } = describedApi();
    const document = { ...rest, paths: { '/api/v3/docs': paths['/api/v3/docs'] }, components };
    const spectral = await lintWithSpectral(document);
    assert.ok(spectral.some((line) => line.startsWith('oas3-api-servers:')));
  });
});
