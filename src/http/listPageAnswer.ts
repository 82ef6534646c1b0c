import { type Answer, errorAnswer, listAnswer } from './answer.ts';

/** A page of a list in Postgres: where it begins, and how many items it has at most. */
export interface ListPage {
  readonly limit: number;
  readonly offset: number;
}

/** Postgres walks over every row that an offset skips. A list that goes on beyond this offset has to be narrowed. */
export const OFFSET_MAX = 100_000;
/** More rows than any table here has. */
const BEYOND_EVERY_LIST = 1e12;

/** The error for a larger offset into a list that goes on there. */
export const OFFSET_MESSAGE = `offset is at most ${OFFSET_MAX} in a list as long as this; narrow it with from and to`;

/**
 * A page of the list that `select` reads. A page behind the end of the list is empty, whatever its offset. An offset
 * beyond OFFSET_MAX is an error if the list goes on there, so no call costs more than a walk over that many rows.
 */
export async function listPageAnswer<Item>(
  page: ListPage,
  select: (page: ListPage) => Promise<readonly Item[]>,
  view: (item: Item) => unknown,
): Promise<Answer> {
  if (page.offset <= OFFSET_MAX) return listAnswer((await select(page)).map(view), page);
  if (page.offset < BEYOND_EVERY_LIST) {
    const beyond = await select({ limit: 1, offset: OFFSET_MAX });
    if (beyond.length > 0) return errorAnswer('BAD_REQUEST', OFFSET_MESSAGE);
  }
  return listAnswer([], page);
}
