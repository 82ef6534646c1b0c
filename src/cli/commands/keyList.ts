import { type ListedKey, selectKeyPage } from '../../tenants/keySettings.sql.ts';
import { defineCommand, findAccount, PAGE_ROWS, printPages } from '../command.ts';
import { optional } from '../option.ts';
import { parseEmail } from '../optionParsers.ts';

export const keyList = defineCommand({
  name: 'key:list',
  summary: 'Prints every API key, revoked ones too, one JSON line each.',
  options: { email: optional('E', 'only those of this account', parseEmail) },
  notes: ['A key itself is not stored: only its first six characters can be shown (prefix).'],
  run: (context, { email }) =>
    context.withSession(async ({ sql }) => {
      const account = await findAccount(sql, email);
      if (!account.ok) return account;
      return printPages(context, (last: ListedKey | null) =>
        selectKeyPage(sql, account.value?.id ?? null, last?.id ?? 0, PAGE_ROWS),
      );
    }),
});
