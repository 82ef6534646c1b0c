import { type ListedWebhook, selectWebhookPage } from '../../webhooks/webhooks.sql.ts';
import { defineCommand, findAccount, PAGE_ROWS, printPages } from '../command.ts';
import { optional } from '../option.ts';
import { parseEmail } from '../optionParsers.ts';

export const webhookList = defineCommand({
  name: 'webhook:list',
  summary: 'Prints every webhook endpoint, one JSON line each.',
  options: { email: optional('E', 'only those of this account', parseEmail) },
  run: (context, { email }) =>
    context.withSession(async ({ sql }) => {
      const account = await findAccount(sql, email);
      if (!account.ok) return account;
      return printPages(context, (last: ListedWebhook | null) =>
        selectWebhookPage(sql, account.value?.id ?? null, last?.id ?? 0, PAGE_ROWS),
      );
    }),
});
