import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type LogPlace, ReplicaLag, type Standing, standingOf } from '../../src/changelog/logPlace.ts';

const PRIMARY: LogPlace = { system: '7', start: 5, reportedAtMs: 1_000, walBytes: 500, isReplica: false };
const REPLICA: LogPlace = { ...PRIMARY, isReplica: true };

describe('a replica stands to a place of the primary', () => {
  const cases: readonly (readonly [string, Partial<LogPlace>, Standing])[] = [
    ['level with the same', {}, 'level'],
    ['level with more', { reportedAtMs: 2_000, walBytes: 700 }, 'level'],
    ['behind with less', { walBytes: 499 }, 'behind'],
    ['behind where it has not even the start', { walBytes: 499, start: 4, reportedAtMs: null }, 'behind'],
    ['as one of another cluster, however far it is', { system: '8', walBytes: 900 }, 'other_cluster'],
    ['as one of another history without the start', { start: 4, walBytes: 900 }, 'other_history'],
    ['as one of another history without the last report', { reportedAtMs: 999 }, 'other_history'],
    ['as one of another history without any report', { reportedAtMs: null }, 'other_history'],
    ['as no replica when it was promoted', { isReplica: false }, 'no_replica'],
  ];
  for (const [how, place, standing] of cases)
    test(how, () => assert.equal(standingOf({ ...REPLICA, ...place }, PRIMARY), standing));

  test('behind as long as the pod has reported nothing to the primary, by which it could tell', () => {
    const place = standingOf({ ...REPLICA, reportedAtMs: null }, { ...PRIMARY, reportedAtMs: null });
    assert.equal(place, 'behind');
  });
});

describe('the lag of a replica', () => {
  test('is the time it took while it is level', () => {
    const lag = new ReplicaLag();
    assert.equal(lag.lagMs(9_000), 0);
    lag.level(100, 1_000, 3);
    assert.equal(lag.lagMs(9_000), 3);
  });

  test('is the age of the last place that it has reached while it is behind', () => {
    const lag = new ReplicaLag();
    lag.level(100, 1_000, 3);
    lag.behind(200, 2_000, 150);
    assert.equal(lag.lagMs(2_100), 1_100);
    lag.behind(300, 3_000, 250);
    assert.equal(lag.lagMs(3_100), 1_100, 'it has what the primary had at 2 s');
    lag.behind(400, 4_000, null);
    assert.equal(lag.lagMs(4_100), 2_100, 'nothing is known of it, so it is no further');
    lag.level(400, 5_000, 8);
    assert.equal(lag.lagMs(5_100), 8);
  });

  test('grows from the first look where it was never level', () => {
    const lag = new ReplicaLag();
    for (let atMs = 1_000; atMs <= 1_000_000; atMs += 1_000) lag.behind(atMs, atMs, 0);
    assert.equal(lag.lagMs(1_000_000), 999_000);
  });
});
