import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ListPage, listPageAnswer, OFFSET_MAX } from '../../../src/http/parameters.ts';

const LIMIT = 50;

/** A page of a list of so many numbers, and what was asked of the list for it. */
async function pageOf(length: number, offset: number) {
  const asked: ListPage[] = [];
  const select = async (page: ListPage) => {
    asked.push(page);
    const size = Math.max(0, Math.min(page.limit, length - page.offset));
    return Array.from({ length: size }, (_, n) => page.offset + n);
  };
  const { status, body } = await listPageAnswer({ limit: LIMIT, offset }, select, (item) => ({ item }));
  return { status, asked, ...JSON.parse(body as string) };
}

describe('a page of a long list', () => {
  test('comes as it is asked for up to the greatest offset', async () => {
    const page = await pageOf(OFFSET_MAX + 10, OFFSET_MAX);
    assert.equal(page.status, 200);
    assert.equal(page.data.length, 10);
    assert.deepEqual(page.data[0], { item: OFFSET_MAX });
    assert.deepEqual(page.meta.pagination, { limit: LIMIT, offset: OFFSET_MAX, count: 10 });
    assert.deepEqual(page.asked, [{ limit: LIMIT, offset: OFFSET_MAX }]);
  });

  test('is refused beyond it, with what to do, when the list goes on there', async () => {
    const page = await pageOf(1_000_000, OFFSET_MAX + 1);
    assert.equal(page.status, 400);
    assert.equal(page.error.code, 'BAD_REQUEST');
    assert.match(page.error.message, /100000.*narrow.*from and to/);
    assert.deepEqual(
      page.asked,
      [{ limit: 1, offset: OFFSET_MAX }],
      'no longer walk than any other page has',
    );
  });

  test('is empty behind the end of its list, wherever it begins', async () => {
    for (const [length, offset] of [
      [0, 200_000],
      [OFFSET_MAX, 200_000],
      [1_000_000, Number.MAX_SAFE_INTEGER],
    ] as const) {
      const page = await pageOf(length, offset);
      assert.equal(page.status, 200);
      assert.deepEqual(page.data, []);
      assert.deepEqual(page.meta.pagination, { limit: LIMIT, offset, count: 0 });
      for (const asked of page.asked) assert.ok(asked.offset <= OFFSET_MAX);
    }
  });

  test('that begins where no list can reach asks nothing', async () => {
    assert.deepEqual((await pageOf(1_000_000, Number.MAX_SAFE_INTEGER)).asked, []);
  });
});
