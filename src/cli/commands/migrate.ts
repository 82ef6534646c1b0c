import { ok } from '../../lib/result.ts';
import { defineCommand } from '../command.ts';

export const migrateCommand = defineCommand({
  name: 'migrate',
  summary: 'Brings the schema of the database up to date (every start and every command does so too).',
  options: {},
  run: (context) => context.withSession(async ({ applied }) => ok({ applied })),
});
