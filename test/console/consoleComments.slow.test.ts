import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { withoutComments } from '../../src/console/consoleFiles.ts';
import { importTypescript, skipWithoutTools } from '../tools/tools.ts';

test('the modules of the console are the same without their comments', {
  skip: skipWithoutTools(),
}, async () => {
  const ts = await importTypescript();
  const folder = new URL('../../src/console/page/', import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  assert.ok(files.length > 20);
  const compilerOptions = {
    removeComments: true,
    target: ts.ScriptTarget.ESNext,
    verbatimModuleSyntax: true,
  };
  const codeOf = (text: string) => ts.transpileModule(text, { compilerOptions }).outputText;
  for (const path of files) {
    const text = readFileSync(new URL(path, folder), 'utf8');
    const without = withoutComments(text);
    assert.ok(without.length < text.length || !text.includes('/**'), path);
    assert.equal(codeOf(without), codeOf(text), path);
  }
});
