import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { FeedAnswer, FeedPage } from '../../src/feeds/pages.ts';
import { callerOf, MemoryFeed, type Page, pageOf } from '../support/feeds/memoryFeed.ts';
import { runs } from '../support/torture.ts';

const [ATTACKER, VICTIM] = [1, 2];
const everyId = (count: number) => Array.from({ length: count }, (_, n) => n + 1);

function madePage(answer: FeedAnswer | undefined): FeedPage {
  assert.ok(typeof answer === 'object', String(answer));
  return answer;
}

/** Waits of many keys, each of which came at another time. */
async function manyWaits(memory: MemoryFeed, count: number, limitOf: (n: number) => number = () => 1_000) {
  const cursor = await memory.cursor(ATTACKER);
  return Array.from({ length: count }, (_, n) => {
    memory.followOthers();
    return memory.wait(ATTACKER, cursor, limitOf(n), Math.floor(n / 20));
  });
}

describe('calls that wait at the same place', () => {
  test('are answered with one page that is made once, whenever they came, and whose bytes are counted once', async () => {
    const memory = new MemoryFeed(400);
    const waits = await manyWaits(memory, 300);
    const { pagesMade } = memory;
    memory.edit(everyId(400));
    await memory.settle();
    const answers = (await Promise.all(waits)).map(madePage);
    assert.equal(memory.pagesMade - pagesMade, 1);
    const [first] = answers as [FeedPage];
    assert.equal(pageOf(first.bytes).data.length, 400);
    for (const { bytes } of answers) assert.equal(bytes, first.bytes, 'the same object');
    assert.equal(memory.unread.bytesOf(ATTACKER), first.bytes.length);
    for (const [n, { handover }] of answers.entries()) {
      assert.equal(memory.unread.bytesOf(ATTACKER), first.bytes.length, `${n} have been read`);
      handover?.done();
      handover?.done();
    }
    assert.equal(memory.unread.bytesOf(ATTACKER), 0);
    memory.close();
  });

  test('do not share with another account, and make it wait for a few steps only', async () => {
    const memory = new MemoryFeed(500);
    const waits = await manyWaits(memory, 300, (n) => 300 + Math.floor(n / 2));
    let isAnswered = false;
    const victim = memory.wait(VICTIM, await memory.cursor(VICTIM)).then((answer) => {
      isAnswered = true;
      return answer;
    });
    memory.edit([499]);
    await memory.settle();
    assert.deepEqual(
      pageOf(madePage(await victim).bytes).data.map(({ imei }) => imei),
      ['350000000000499'],
    );
    for (const wait of await Promise.all(waits)) madePage(wait).handover?.done();

    const again = await manyWaits(memory, 300, (n) => 300 + Math.floor(n / 2));
    isAnswered = false;
    const next = memory.wait(VICTIM, await memory.cursor(VICTIM), 10).then(() => {
      isAnswered = true;
    });
    memory.edit(everyId(500));
    let turns = 0;
    while (!isAnswered) {
      turns++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    const left = await memory.settle();
    assert.ok(
      turns < 100 && left > 100,
      `answered after ${turns} turns; ${left} more were needed for the others`,
    );
    await Promise.all([next, ...again]);
    memory.close();
  });

  test('whoever hangs up leaves the page to the others, and holds no place', async () => {
    const memory = new MemoryFeed(5);
    const cursor = await memory.cursor(ATTACKER);
    const leave: (() => void)[] = [];
    const whenLeft = (listener: () => void) => void leave.push(listener);
    const query = { cursor, limit: 10, waitMs: 25_000, gatherMs: 0, whenLeft };
    const all = Array.from({ length: 20 }, () =>
      Promise.resolve(memory.feed.next(callerOf(ATTACKER), query)),
    );
    assert.equal(
      pageOf(madePage(await memory.wait(ATTACKER, cursor)).bytes).data.length,
      0,
      'the key is full',
    );
    for (const hangUp of leave.slice(1)) hangUp();
    const late = memory.wait(ATTACKER, cursor);
    memory.edit([1]);
    await memory.settle();
    const lengths = (await Promise.all([...all, late])).map(
      (answer) => pageOf(madePage(answer).bytes).data.length,
    );
    assert.deepEqual(lengths, [1, ...Array.from({ length: 19 }, () => 0), 1]);
    memory.close();
  });
});

describe('pages of ten thousand', () => {
  test('bring every device once, page by page', async () => {
    const memory = new MemoryFeed(25_000);
    const pages: Page[] = [];
    for (let cursor: string | null = null, hasMore = true; hasMore; ) {
      const page: Page = await memory.page(ATTACKER, { cursor, limit: 10_000 });
      assert.ok(page.meta.cursor.length <= 500);
      ({ cursor, has_more: hasMore } = page.meta);
      pages.push(page);
    }
    assert.deepEqual(
      pages.map(({ data }) => data.length),
      [10_000, 10_000, 5_000],
    );
    const imeis = pages.flatMap(({ data }) => data.map(({ imei }) => imei));
    assert.deepEqual(
      imeis,
      everyId(25_000).map((n) => String(350_000_000_000_000 + n)),
    );
    memory.close();
  });

  test('let another account have its page after a few steps, and devices stand on it as its cursor says', async () => {
    const memory = new MemoryFeed(10_000);
    const [cursor, own] = [await memory.cursor(ATTACKER), await memory.cursor(VICTIM)];
    memory.edit(everyId(10_000));
    const query = { cursor, limit: 10_000, waitMs: 0, gatherMs: 0 };
    const large = Array.from({ length: 10 }, () =>
      Promise.resolve(memory.feed.next(callerOf(ATTACKER), query)),
    );
    // One step has been read.
    await new Promise((resolve) => setImmediate(resolve));
    memory.edit([9_999]);
    const victim = Promise.resolve(memory.feed.next(callerOf(VICTIM), { ...query, cursor: own, limit: 501 }));
    let isAnswered = false;
    void victim.then(() => {
      isAnswered = true;
    });
    let turns = 0;
    for (; !isAnswered; turns++) await new Promise((resolve) => setImmediate(resolve));
    const left = await memory.settle();
    assert.ok(turns < 60 && left > 1_000, `answered after ${turns} turns; ${left} more for the others`);
    madePage(await victim).handover?.done();
    const [first] = await Promise.all(large);
    const page = pageOf(madePage(first).bytes);
    const names = new Map(page.data.map(({ imei, name }) => [imei, name]));
    const last = await memory.page(ATTACKER, { cursor: page.meta.cursor, limit: 10_000 });
    for (const { imei, name } of last.data) names.set(imei, name);
    const all = await memory.page(ATTACKER, { cursor: null, limit: 10_000 });
    assert.deepEqual(new Map([...names].sort()), new Map(all.data.map(({ imei, name }) => [imei, name])));
    memory.close();
  });
});

describe('answers that nobody reads', () => {
  test('stop at the room of their account, waits go on when it is read, and others are answered', async () => {
    const unreadMaxBytes = 100_000;
    const memory = new MemoryFeed(400, { unreadMaxBytes });
    // Pages of different sizes are different pages.
    const waits = await manyWaits(memory, 300, (n) => 50 + n);
    const victim = memory.wait(VICTIM, await memory.cursor(VICTIM));
    const cursor = await memory.cursor(ATTACKER);
    memory.edit(everyId(400));
    await memory.settle();
    const largestBytes = madePage(await victim).bytes.length;
    assert.ok(memory.unread.bytesOf(ATTACKER) <= unreadMaxBytes + largestBytes);
    for (const limit of [10, 300, 10_000]) {
      const query = { cursor, limit, waitMs: 0, gatherMs: 0 };
      assert.equal(await memory.feed.next(callerOf(ATTACKER), query), 'unread', `${limit}`);
    }

    const unread: FeedPage[] = [];
    let answered = 0;
    for (const wait of waits) {
      void wait.then((answer) => {
        answered++;
        unread.push(madePage(answer));
      });
    }
    await memory.settle();
    assert.ok(answered > 0 && answered < waits.length, `${answered} had room at once`);
    while (answered < waits.length) {
      for (const { handover } of unread.splice(0)) handover?.done();
      await memory.settle();
      assert.ok(memory.unread.bytesOf(ATTACKER) <= unreadMaxBytes + largestBytes);
    }
    for (const { handover } of unread) handover?.done();
    assert.equal(memory.unread.bytesOf(ATTACKER), 0);
    memory.close();
  });

  test('are said to be the reason when the time of a wait is over', async () => {
    const memory = new MemoryFeed(40, { unreadMaxBytes: 1 });
    const waits = await manyWaits(memory, 40, (n) => 10 + n);
    memory.edit(everyId(40));
    await memory.settle();
    memory.close();
    const answers = await Promise.all(waits);
    const made = answers.filter((answer) => typeof answer === 'object');
    assert.equal(made.length, 1);
    for (const answer of answers) if (typeof answer === 'string') assert.equal(answer, 'unread');
  });
});

test('a shared page has the bytes of a page for one, but for its cursor, and that leads to the same', async () => {
  const place = fc.record({
    edits: fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 4 }),
    limit: fc.integer({ min: 1, max: 14 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(place, { minLength: 1, maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 12 }),
      async (places, changed) => {
        const memory = new MemoryFeed(12);
        const waits: { cursor: string; limit: number; answer: Promise<FeedAnswer> }[] = [];
        for (const { edits, limit } of places) {
          // Those who wait already are answered, and others come.
          if (edits.length > 0) memory.edit(edits);
          await memory.settle();
          const cursor = await memory.cursor(ATTACKER);
          waits.push({ cursor, limit, answer: memory.wait(ATTACKER, cursor, limit, waits.length) });
          memory.followOthers();
        }
        const answered = new Set<number>();
        waits.forEach(({ answer }, n) => void answer.then(() => answered.add(n)));
        await new Promise((resolve) => setImmediate(resolve));
        const waiting = waits.filter((_, n) => !answered.has(n));
        memory.edit(changed);
        await memory.settle();
        for (const { cursor, limit, answer } of waiting) {
          const shared = pageOf(madePage(await answer).bytes);
          const single = await memory.page(ATTACKER, { cursor, limit });
          const bare = ({ data, meta }: Page) => JSON.stringify({ data, hasMore: meta.has_more });
          assert.equal(bare(shared), bare(single));
          assert.deepEqual(await rest(memory, shared, limit), await rest(memory, single, limit));
        }
        memory.close();
      },
    ),
    { numRuns: runs(25) },
  );
});

/** What follows a page, to the end. */
async function rest(memory: MemoryFeed, { meta }: Page, limit: number): Promise<Page['data'][]> {
  const pages: Page['data'][] = [];
  for (let { cursor, has_more: hasMore } = meta; hasMore; ) {
    const page = await memory.page(ATTACKER, { cursor, limit });
    pages.push(page.data);
    ({ cursor, has_more: hasMore } = page.meta);
  }
  return pages;
}

describe('a cursor that was made under a start of the server', () => {
  test('that this pod has not met yet is followed once the server was asked', async () => {
    const [here, there] = [new MemoryFeed(3), new MemoryFeed(3)];
    const before = await here.cursor(ATTACKER);
    there.meetStart(2);
    const cursor = await there.cursor(ATTACKER);
    let asked = 0;
    here.whenAsked = () => {
      asked++;
      here.meetStart(2);
      here.edit([2]);
    };
    const page = await here.page(ATTACKER, { cursor, limit: 10 });
    assert.deepEqual(
      page.data.map(({ imei }) => imei),
      ['350000000000002'],
    );
    assert.equal(asked, 1);
    assert.deepEqual((await here.page(ATTACKER, { cursor: before, limit: 10 })).data.length, 1);
    assert.equal(asked, 1, 'an earlier start is known');
    for (const memory of [here, there]) memory.close();
  });

  test('that the server does not know has expired', async () => {
    const [here, there] = [new MemoryFeed(3), new MemoryFeed(3)];
    there.meetStart(2);
    const cursor = await there.cursor(ATTACKER);
    await assert.rejects(here.page(ATTACKER, { cursor, limit: 10 }), /expired/);
    for (const memory of [here, there]) memory.close();
  });
});
