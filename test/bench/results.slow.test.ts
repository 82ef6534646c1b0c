import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Row } from '../../bench/benchCase.ts';
import { profile } from '../../bench/measure/profile.ts';
import {
  type BenchRecord,
  formatResults,
  newestCases,
  readRecords,
  resultsText,
  withSummary,
  writeRecord,
} from '../../bench/report/results.ts';

const BENCH = join(import.meta.dirname, '..', '..', 'bench');
const LINES_MAX = 200;

function recordOf(
  takenAt: string,
  commit: string,
  cases: Readonly<Record<string, number>>,
  rows: readonly Row[] = [],
): BenchRecord {
  const machine = { cpu: 'a processor', cores: 2, memoryGb: 4, node: 'v24', postgres: 'given Postgres' };
  return {
    takenAt,
    machine: { ...machine, commit, load: 0.5 },
    seconds: 9,
    cases: Object.entries(cases).map(([name, ratio]) => ({
      name,
      size: '10 devices',
      rows,
      metrics: { ratio },
    })),
  };
}

const cellsOf = (text: string, start: string): string[] | undefined =>
  text
    .split('\n')
    .find((line) => line.startsWith(`| ${start} `))
    ?.split('|')
    .map((cell) => cell.trim())
    .slice(1, -1);

describe('the results in the repository', () => {
  test('are what the records and budgets give: npm run bench -- --results writes them', async () => {
    const files = await formatResults();
    assert.equal(files.length, 2);
    for (const { url, text } of files) assert.equal(await readFile(url, 'utf8'), text);
  });

  test(`have at most ${LINES_MAX} lines`, async () => {
    const lines = (await readFile(join(BENCH, 'RESULTS.md'), 'utf8')).split('\n').length - 1;
    assert.ok(lines <= LINES_MAX, `${lines} lines`);
  });
});

describe('the results', () => {
  const older = recordOf('2026-01-01T10:00:00.000Z', 'old0000', { nearest: 1, ingest: 5 });
  const newer = recordOf('2026-02-01T10:00:00.000Z', 'new0000', { nearest: 2 });

  test('show each case from its newest record, with the commit and the date', () => {
    const text = resultsText(newestCases([newer, older]), {
      nearest: { ratio: { min: 1 } },
      ingest: { ratio: { max: 5, goal: 4 } },
    });
    assert.deepEqual(cellsOf(text, 'nearest ratio'), [
      'nearest ratio',
      '2.00',
      '≥ 1',
      '',
      'kept',
      'new0000',
      '2026-02-01',
    ]);
    assert.deepEqual(cellsOf(text, 'ingest ratio'), [
      'ingest ratio',
      '5.00',
      '≤ 5',
      '4',
      'kept, below goal',
      'old0000',
      '2026-01-01',
    ]);
  });

  test('say which budgets are broken, and which have no measurement', () => {
    const text = resultsText(newestCases([newer]), {
      nearest: { ratio: { min: 3 }, gone: { min: 1 } },
      soak: { growth: { max: 1 } },
    });
    assert.equal(cellsOf(text, 'nearest ratio')?.[4], 'BROKEN');
    assert.equal(cellsOf(text, 'nearest gone')?.[4], 'not measured');
    assert.deepEqual(cellsOf(text, 'soak growth')?.slice(4), ['not measured', '', '']);
  });

  test('give the summary its newest values, and leave the text around it as it is', () => {
    const text = withSummary(
      'before\n<!-- results: npm run bench -- --results -->\n\nold\n\n<!-- end of results -->\nafter\n',
      newestCases([recordOf('2026-02-01T10:00:00.000Z', 'new0000', { demo: 2 })]),
    );
    assert.match(text, /^before\n<!--[\s\S]*-->\nafter\n$/);
    assert.deepEqual(cellsOf(text, '`npm run demo` to the first answer'), [
      '`npm run demo` to the first answer',
      '– s',
      'new0000',
      '2026-02-01',
    ]);
    assert.throws(() => withSummary('no marks', []), /no <!-- results/);
  });

  test('show the main row of a case that has floors, with every floor beside it', () => {
    const plain = Array.from({ length: 20 }, (_, n): Row => ({ what: `row${n}`, perSecond: n }));
    const floor: Row = { what: 'floor: the least', perSecond: 5 };
    const other: Row = { what: 'floor: another', seconds: 2 };
    const atShare: Row = { what: 'at a quarter', perSecond: 5, histogram: '' };
    const shown = (rows: readonly Row[]) =>
      resultsText(newestCases([recordOf('2026-01-01T10:00:00.000Z', 'c', { nearest: 1 }, rows)]), {});
    const few = shown([...plain, floor, atShare, other]);
    assert.ok(cellsOf(few, 'nearest: row19')?.includes('the least: 5 requests/s; another: 2.00 s'));
    for (const what of ['row18', 'at a quarter', 'floor: the least'])
      assert.equal(cellsOf(few, `nearest: ${what}`), undefined);
    assert.equal(cellsOf(shown(plain), 'nearest: row19'), undefined);
  });
});

test('a profile is kept in a file beside its record, without paths of the machine', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-records-'));
  t.after(() => rm(folder, { recursive: true }));
  const url = pathToFileURL(`${folder}/`);
  // A thousand samples' worth, so that this file is among them.
  const busy = () => {
    let calls = 0;
    for (const endMs = performance.now() + 100; performance.now() < endMs; calls++) readdirSync(folder);
    return calls;
  };
  const found = await profile('a call', async () => busy());
  const record = recordOf('2026-01-01T10:00:00.000Z', 'c', { nearest: 1 });
  await writeRecord(url, { ...record, cases: record.cases.map((of) => ({ ...of, profiles: [found] })) });
  const [kept] = (await readRecords(url))[0]?.cases ?? [];
  assert.deepEqual(kept?.profiles, [{ of: found.of, parts: found.parts }]);
  const text = await readFile(join(folder, '2026-01-01T1000Z-c-nearest-1.cpuprofile'), 'utf8');
  assert.deepEqual(JSON.parse(text), found.cpuProfile);
  assert.ok(text.includes('"url":"test/bench/results.slow.test.ts"') && !text.includes('file:'));
});

test('a record is read as it was written, the newest first', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-records-'));
  t.after(() => rm(folder, { recursive: true }));
  const url = pathToFileURL(`${folder}/`);
  const records = ['2026-01-03', '2026-01-01', '2026-01-02'].map((day, n) =>
    recordOf(`${day}T10:00:00.000Z`, `commit${n}`, { nearest: n, ingest: n }, [
      { what: 'a | b', perSecond: 1 },
    ]),
  );
  for (const record of records) await writeRecord(url, record);
  assert.deepEqual(await readRecords(url), [records[0], records[2], records[1]]);
});
