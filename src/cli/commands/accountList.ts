import { type ListedAccount, selectAccountPage } from '../../tenants/accountPages.sql.ts';
import { defineCommand } from '../command.ts';
import { PAGE_ROWS, printPages } from '../printPages.ts';

export const accountList = defineCommand({
  name: 'account:list',
  summary: 'Prints every account, one JSON line each.',
  options: {},
  run: (context) =>
    context.withSession(({ sql }) =>
      printPages(context, (last: ListedAccount | null) => selectAccountPage(sql, last?.id ?? 0, PAGE_ROWS)),
    ),
});
