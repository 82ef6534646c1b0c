import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareMetrics, formatComparison, readMetrics } from '../../bench/compareMetrics.ts';
import { formatRun } from '../../bench/report/report.ts';

const printed = (name: string, metrics: Record<string, number>) =>
  `### ${name}\n\n${formatRun({ kind: 'measured', size: '10 devices, 2 areas', rows: [{ what: 'a', perSecond: 5 }], metrics })}\n\n- kept: x 1 (at least 1)\n`;

test('the metrics of a run are read as they are printed, case by case, and no other line is read as a metric', () => {
  const output =
    printed('nearest', { of_express: 1.234, us_2000: 12_345 }) + printed('ingest', { p99_ms: 0.5 });
  assert.deepEqual(
    [...readMetrics(output)],
    [
      ['nearest of_express', 1.23],
      ['nearest us_2000', 12_345],
      ['ingest p99_ms', 0.5],
    ],
  );
});

test('versions are compared by the median of the ratios of the rounds, for metrics that both have', () => {
  const metrics = (value: number) => new Map([['nearest p99_ms', value]]);
  const round = (before: number, after: number) => ({ before: metrics(before), after: metrics(after) });
  const rounds = [round(10, 5), round(100, 50), round(10, 20)];
  rounds[0]?.before.set('nearest gone', 1);
  assert.deepEqual(compareMetrics(rounds), [
    { name: 'nearest p99_ms', before: 10, after: 20, ratio: 0.5, least: 0.5, greatest: 2 },
  ]);
  assert.match(
    formatComparison(compareMetrics(rounds), 'abc1234'),
    /abc1234.*\n.*\n.*p99_ms.*0\.50 \(0\.50–2\.00\)/,
  );
});
