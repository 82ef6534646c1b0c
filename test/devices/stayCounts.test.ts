import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StayCounts } from '../../src/devices/stays/stayCounts.ts';

const [ANNA, BEN] = [1, 2];

function counts(): StayCounts {
  const stays = new StayCounts();
  stays.putArea(10, ANNA);
  stays.putArea(11, ANNA);
  stays.putArea(20, BEN);
  return stays;
}

describe('the stays of an account', () => {
  test('are those in the areas that it made', () => {
    const stays = counts();
    for (const areaId of [10, 11, 11, 20]) stays.begin(areaId);
    assert.deepEqual([stays.ofAccount(ANNA), stays.ofAccount(BEN), stays.total], [3, 1, 4]);
    for (const areaId of [11, 20]) stays.end(areaId);
    assert.deepEqual([stays.ofAccount(ANNA), stays.ofAccount(BEN), stays.total], [2, 0, 2]);
  });

  test('count also where they came before their area', () => {
    const stays = counts();
    stays.begin(30);
    assert.deepEqual([stays.ofAccount(BEN), stays.total], [0, 1]);
    stays.putArea(30, BEN);
    stays.putArea(30, BEN);
    assert.equal(stays.ofAccount(BEN), 1);
    stays.end(30);
    assert.equal(stays.ofAccount(BEN), 0);
  });

  test('are those of another account when its area has the same id in another history of Postgres', () => {
    const stays = counts();
    stays.begin(10);
    stays.removeArea(10);
    stays.putArea(10, BEN);
    assert.deepEqual([stays.ofAccount(ANNA), stays.ofAccount(BEN)], [0, 1]);
  });

  test('count until they end, also when their area is deleted or replaced meanwhile', () => {
    const stays = counts();
    stays.begin(10);
    stays.removeArea(10);
    assert.equal(stays.ofAccount(ANNA), 1);
    stays.putArea(10, ANNA);
    assert.equal(stays.ofAccount(ANNA), 1);
    stays.removeArea(10);
    stays.end(10);
    assert.deepEqual([stays.ofAccount(ANNA), stays.total], [0, 0]);
    stays.begin(10);
    assert.equal(stays.ofAccount(ANNA), 0, 'nothing is remembered of an area without stays');
  });
});
