import { type Answer, errorAnswer, listAnswer } from './answer.ts';

/** Where a page of a list in Postgres begins, and how much it holds. */
export interface ListPage {
  readonly limit: number;
  readonly offset: number;
}

/** What an offset passes over is walked, key by key: beyond this a list is to be narrowed. */
export const OFFSET_MAX = 100_000;
/** More rows than any table here has. */
const MORE_THAN_THERE_ARE = 1e12;

/** What is answered to a larger offset into a list that is longer. */
export const OFFSET_REFUSAL = `offset is at most ${OFFSET_MAX} in a list as long as this; narrow it with from and to`;

/**
 * A page of a list that `select` reads. A page behind the end of its list is empty, wherever it begins; one that begins
 * beyond OFFSET_MAX in a list that goes on there is refused, so that no call costs more than a walk of that length.
 */
export async function deepPageAnswer<Item>(
  page: ListPage,
  select: (page: ListPage) => Promise<readonly Item[]>,
  view: (item: Item) => unknown,
): Promise<Answer> {
  if (page.offset <= OFFSET_MAX) return listAnswer((await select(page)).map(view), page);
  if (page.offset < MORE_THAN_THERE_ARE) {
    const beyond = await select({ limit: 1, offset: OFFSET_MAX });
    if (beyond.length > 0) return errorAnswer('BAD_REQUEST', OFFSET_REFUSAL);
  }
  return listAnswer([], page);
}
