import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { IS_TORTURE } from './support/torture.ts';
import { importTool, importTypescript, type SyntaxNode, skipWithoutTools } from './tools/tools.ts';

const SRC = new URL('../src/', import.meta.url).pathname;
/** A digest of each expression that was found linear, so that it is analysed once; npm run torture analyses all anew. */
const KNOWN = join(import.meta.dirname, 'data', 'linear-expressions.json');
/** FLEET_EXPRESSIONS=write npm test -- expressions analyses all and writes the digests. */
const WRITES = process.env['FLEET_EXPRESSIONS'] === 'write';
const LOCK = join(import.meta.dirname, 'tools', 'package-lock.json');
/** Where an expression may begin: a slash that is no comment and does not follow a value, which it would divide. */
const MAY_BEGIN =
  /(?:^|[^\s\w$\]'"`.*/<]|\b(?:return|typeof|case|of|in|do|else|void|yield|await))\s*\/(?![*/])/m;

/** Of a route, as it is made of its text. */
const PATH = '^tiles\\/areas\\/(?<z>[^\\/]*)\\/(?<x>[^\\/]*)\\/(?<y>[^\\/]*)\\.mvt$';

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

const known = new Set<string>(IS_TORTURE || WRITES ? [] : JSON.parse(readFileSync(KNOWN, 'utf8')));
const recheckVersion: string = JSON.parse(readFileSync(LOCK, 'utf8')).packages['node_modules/recheck']
  .version;

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
    assert.equal(growthOf(PATH, ''), 'linear');
  });

  test('are those of which is known that they are linear', () => {
    const all = [...literals, { source: PATH, flags: '' }];
    const linear = all.filter(({ source, flags }) => growthOf(source, flags) === 'linear');
    const digests = [...new Set(linear.map(({ source, flags }) => digestOf(`/${source}/${flags}`)))].sort();
    if (WRITES) writeFileSync(KNOWN, `${JSON.stringify(digests, null, 2)}\n`);
    const kept = JSON.parse(readFileSync(KNOWN, 'utf8'));
    assert.deepEqual(kept, digests, 'FLEET_EXPRESSIONS=write npm test -- expressions keeps what was found');
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
    test(`/${source}/${flags}`, () => assert.notEqual(analysed(source, flags), 'linear'));
  }
});

/** What was found, since many expressions stand in several places. */
const found = new Map<string, string>();

function growthOf(source: string, flags: string): string {
  const literal = `/${source}/${flags}`;
  let growth = found.get(literal);
  if (growth === undefined) {
    growth = known.has(digestOf(literal)) ? 'linear' : analysed(source, flags);
    found.set(literal, growth);
  }
  return growth;
}

function analysed(source: string, flags: string): string {
  const { status, complexity } = check(source, flags);
  return status === 'safe' ? 'linear' : (complexity?.summary ?? status);
}

/** Another one for another version of recheck. */
function digestOf(literal: string): string {
  return createHash('sha256').update(`${recheckVersion} ${literal}`).digest('base64url').slice(0, 16);
}

function expressionsOf(path: string, text: string): Expression[] {
  const found: Expression[] = [];
  if (ts === null || !(IS_TORTURE || MAY_BEGIN.test(text))) return found;
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
