import type { Query } from './sql.ts';

/** On sessions of versions that know packed points. Those of the versions before were named `fleet <task>`. */
const MARK = '+packed';
const ANY = 'fleet %';
const MARKED = `% ${MARK}`;

/** The name of a session of this service, as pg_stat_activity shows it. */
export function sessionName(task: string): string {
  return `fleet ${task} ${MARK}`;
}

/** True while a pod of a version that does not know packed points is connected to this database. */
export async function isOlderConnected(sql: Query): Promise<boolean> {
  const [row] = await sql<{ connected: boolean }[]>`
    select exists (
      select from pg_stat_activity
      where datname = current_database() and application_name like ${ANY} and application_name not like ${MARKED}
    ) as connected`;
  return row?.connected ?? true;
}
