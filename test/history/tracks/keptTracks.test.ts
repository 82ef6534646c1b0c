import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KeptTracks } from '../../../src/history/tracks/trackTiles.ts';

const MAX_BYTES = 100_000;
const [READER, VICTIM] = [1, 2];
const tile = (bytes: number) => ({ bytes: Buffer.alloc(bytes), etag: 'W/"1"', version: '1' });
const keptOf = (kept: KeptTracks, accountId: number, names: number) =>
  Array.from({ length: names }, (_, n) => `${n}`).filter((name) => kept.get(accountId, name) !== undefined);

describe('made tiles of tracks that are kept', () => {
  test('take no more than they may in all, whoever reads and however large or empty they are', () => {
    const kept = new KeptTracks(MAX_BYTES);
    for (let n = 0; n < 2_000; n++) {
      kept.put(n % 7, `${n % 90}`, n % 3 === 0 ? { ...tile(0), bytes: null } : tile((n * 7_919) % 5_000));
      assert.ok(kept.bytes <= MAX_BYTES, `${kept.bytes}`);
    }
    assert.ok(kept.bytes > MAX_BYTES / 2);
    kept.put(READER, 'larger than all', tile(2 * MAX_BYTES));
    assert.equal(kept.get(READER, 'larger than all'), undefined);
    assert.ok(kept.bytes <= MAX_BYTES && keptOf(kept, VICTIM, 90).length > 0, 'the others lose nothing');
  });

  test('of an account that reads little stay while another reads much', () => {
    const kept = new KeptTracks(MAX_BYTES);
    for (let n = 0; n < 20; n++) kept.put(VICTIM, `${n}`, tile(1_000));
    for (let n = 0; n < 5_000; n++) kept.put(READER, `${n}`, tile(1_000));
    assert.equal(keptOf(kept, VICTIM, 20).length, 20);
    assert.ok(kept.bytes > MAX_BYTES - 2_000, 'who reads much has all the rest');
    for (let n = 0; n < 5_000; n++) kept.put(VICTIM, `${n}`, tile(1_000));
    const each = [READER, VICTIM].map((accountId) => keptOf(kept, accountId, 5_000).length);
    assert.ok(Math.abs((each[0] ?? 0) - (each[1] ?? 0)) <= 1, `equal shares: ${each}`);
  });

  test('that are used stay before those that are not, and are replaced by newer ones', () => {
    const kept = new KeptTracks(MAX_BYTES);
    for (let n = 0; n < 200; n++) {
      kept.put(READER, `${n}`, tile(1_000));
      assert.ok(kept.get(READER, '0') !== undefined);
    }
    assert.equal(kept.get(READER, '1'), undefined);
    const { bytes } = kept;
    kept.put(READER, '0', { ...tile(1_000), version: '2' });
    assert.equal(kept.get(READER, '0')?.version, '2');
    assert.equal(kept.bytes, bytes);
  });
});
