import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatComparison, readMetrics } from '../../bench/report/comparison.ts';

const run = (rate: number, ratio: number) =>
  readMetrics(
    `a machine\n\n### nearest\n\nsize\n\nrate ${rate}, of_node_by_cpu ${ratio}\n\nA/A noise: rate ±1.0 %\n`,
  );
const lastCell = (text: string, metric: string) =>
  text
    .split('\n')
    .find((line) => line.includes(metric))
    ?.split('|')
    .at(-2)
    ?.trim();

describe('a comparison', () => {
  test('reads the metrics of a run by case, also those of thousands', () => {
    const metrics = readMetrics(
      '### ingest\n\npoints_per_second 38 955, of_unnest 0.269\n\n### start\n\nseconds 9.21\n',
    );
    assert.deepEqual(Object.fromEntries(metrics), {
      'ingest points_per_second': 38_955,
      'ingest of_unnest': 0.269,
      'start seconds': 9.21,
    });
  });

  test('calls noise what differs by no more than two rounds of the same version', () => {
    const rounds = [
      { before: run(100, 0.8), after: run(108, 0.9) },
      { before: run(110, 0.81), after: run(115, 0.91) },
      { before: run(100, 0.8), after: run(107, 0.9) },
    ];
    const text = formatComparison(rounds, 'abc1234');
    assert.equal(lastCell(text, 'nearest rate'), 'noise');
    assert.equal(lastCell(text, 'nearest of_node_by_cpu'), '');
    assert.match(text, /of_node_by_cpu \| 0\.800 +\| 0\.900 +\| 1\.13 \(1\.12–1\.13\)/);
  });
});
