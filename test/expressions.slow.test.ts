import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { importTool, importTypescript, type SyntaxNode, skipWithoutTools } from './tools/tools.ts';

const SRC = new URL('../src/', import.meta.url).pathname;

interface Expression {
  readonly place: string;
  readonly source: string;
  readonly flags: string;
}

interface Verdict {
  readonly status: 'safe' | 'vulnerable' | 'unknown';
  readonly complexity?: { readonly summary: string };
}

/** What is used of recheck. */
interface Recheck {
  checkSync(source: string, flags: string, options: object): Verdict;
}

const skip = skipWithoutTools();
const ts = skip === false ? await importTypescript() : null;

/**
 * Every regular expression is matched in linear time, whatever the text. This is shown by analysis, not by the clock:
 * recheck turns an expression into an automaton and looks for a text on which backtracking grows faster than the text;
 * where an expression is too large for that, it searches for such a text and counts the steps of its own matcher.
 * Neither depends on how busy the machine is, and the search is seeded.
 */
let check: (source: string, flags: string) => Verdict;
before(async () => {
  if (skip !== false) return;
  process.env['RECHECK_BACKEND'] = 'pure'; // in this process: neither Java nor a binary is needed
  const { checkSync } = await importTool<Recheck>('recheck');
  check = (source, flags) => checkSync(source, flags, { timeout: null, randomSeed: 1 });
});

describe('the regular expressions of src', { skip }, () => {
  const literals = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => expressionsOf(path, readFileSync(join(SRC, path), 'utf8')));

  test('are found', () => {
    assert.ok(literals.length > 40);
    assert.ok(literals.some(({ place }) => place.startsWith('http/parameters.ts')));
  });

  for (const { place, source, flags } of literals) {
    test(`${place} ${source.slice(0, 60)}`, () => {
      assert.equal(growthOf(source, flags), 'linear');
    });
  }

  test('those made of text are known', () => {
    const made = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
      (path) => path.endsWith('.ts') && /\bRegExp\(/.test(readFileSync(join(SRC, path), 'utf8')),
    );
    // A prefix and a count of letters; the path of a route with several parameters.
    assert.deepEqual(made, ['access/credentials.ts', 'http/routeTable.ts']);
    const path = '^tiles\\/areas\\/(?<z>[^\\/]*)\\/(?<x>[^\\/]*)\\/(?<y>[^\\/]*)\\.mvt$';
    assert.equal(growthOf(path, ''), 'linear');
  });
});

describe('an expression that is not linear is found', { skip }, () => {
  for (const [source, flags] of [
    ['^[+-]?(?:\\d+\\.?\\d*|\\.\\d+)$', ''],
    ['=+$', ''],
    ['^(a+)+$', ''],
    ['^\\s*(\\S+\\s*)*;$', 'u'],
    ['(x|X)*,(x|X)*,(x|X)*!', 'i'],
  ] as const) {
    test(`/${source}/${flags}`, () => assert.notEqual(growthOf(source, flags), 'linear'));
  }
});

/** What was found, since many expressions stand in several places. */
const known = new Map<string, string>();

function growthOf(source: string, flags: string): string {
  const literal = `/${source}/${flags}`;
  let growth = known.get(literal);
  if (growth === undefined) {
    const { status, complexity } = check(source, flags);
    growth = status === 'safe' ? 'linear' : (complexity?.summary ?? status);
    known.set(literal, growth);
  }
  return growth;
}

function expressionsOf(path: string, text: string): Expression[] {
  const found: Expression[] = [];
  if (ts === null) return found;
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const visit = (node: SyntaxNode): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/');
      const { line } = file.getLineAndCharacterOfPosition(node.getStart());
      const place = `${path}:${line + 1}`;
      found.push({ place, source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}
