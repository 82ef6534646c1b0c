import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Env, readConfig } from '../src/config.ts';
import { readyText } from '../src/readyText.ts';

/** What is printed by a service with these variables. */
function linesOf(env: Env, ports: { port: number | null; ingestPort: number }): string[] {
  const config = readConfig(env);
  assert.ok(config.ok);
  return readyText(config.value, { ...ports, generatedIngestToken: 'fresh-token' }).split('\n');
}

describe('what a started service prints in a terminal', () => {
  test('a token that was generated is shown with the file that keeps it', () => {
    const lines = linesOf({ DATA_DIR: '/srv/my fleet' }, { port: 3000, ingestPort: 3001 });
    assert.ok(
      lines.includes('  Token    fresh-token, kept in /srv/my fleet/secrets.json; send it as X-Ingest-Token'),
      lines.join('\n'),
    );
  });

  test('commands to paste name a data folder that is not the usual one, quoted for the shell', () => {
    const commands = (env: Env) =>
      linesOf(env, { port: 3000, ingestPort: 3001 }).filter(
        (line) => line.startsWith('  ') && /fleet --/.test(line),
      );
    assert.ok(commands({}).every((line) => line.startsWith('  npm run -s fleet -- ')));
    const elsewhere = commands({ DATA_DIR: '/srv/my fleet' });
    assert.equal(elsewhere.length, 3);
    assert.ok(elsewhere.every((line) => line.startsWith("  DATA_DIR='/srv/my fleet' npm run -s fleet -- ")));
  });

  test('a listener on every address is shown by one that can be called', () => {
    const lines = linesOf({ HOST: '0.0.0.0', INGEST_HOST: '::' }, { port: 3000, ingestPort: 3001 });
    assert.ok(lines.includes('  API      http://127.0.0.1:3000/api/v3'));
    assert.ok(lines.includes('  Ingest   http://[::1]:3001/positions'));
  });

  test('a pod that only delivers names no API and no ingest', () => {
    const lines = linesOf({ ROLES: 'delivery' }, { port: null, ingestPort: 3001 });
    assert.ok(lines.includes('  Metrics  http://127.0.0.1:3001/metrics'));
    assert.ok(!lines.some((line) => /^ {2}(Console|API|Docs|Ingest|Token) /.test(line)));
  });
});
