import { type ListedAccount, selectAccountPage } from '../../tenants/accounts.sql.ts';
import { defineCommand, PAGE_ROWS, printPages } from '../command.ts';

export const accountList = defineCommand({
  name: 'account:list',
  summary: 'Prints every account, one JSON line each.',
  options: {},
  run: (context) =>
    context.withSession(({ sql }) =>
      printPages(context, (last: ListedAccount | null) => selectAccountPage(sql, last?.id ?? 0, PAGE_ROWS)),
    ),
});
