import { arrayLiteral, type Sql } from '../postgres/sql.ts';

export const COMMAND_STATUSES = ['pending', 'sent', 'canceled'] as const;

export type CommandStatus = (typeof COMMAND_STATUSES)[number];

/** An entry of a device's command queue. */
export interface Command {
  readonly id: number;
  readonly type: string;
  readonly status: CommandStatus;
  readonly queuedAtMs: number;
  readonly sentAtMs: number | null;
}

/** Adds a pending command to a device's queue and returns its id; undefined when the device does not exist. */
export async function insertCommand(sql: Sql, imei: string, type: string): Promise<number | undefined> {
  const [row] = await sql<{ id: number }[]>`
    insert into command (device_id, type) select id, ${type} from device where imei = ${imei}
    returning id`;
  return row?.id;
}

/** Sets the status of a pending command. Returns the status before; undefined when the command does not exist. */
export async function finishCommand(
  sql: Sql,
  id: number,
  status: Exclude<CommandStatus, 'pending'>,
): Promise<CommandStatus | undefined> {
  const [row] = await sql<{ before: CommandStatus }[]>`
    with found as (
      select id, status from command where id = ${id} for update
    ), changed as (
      update command c set
        status = ${status},
        sent_at = case when ${status === 'sent'} then clock_timestamp() end
      from found where c.id = found.id and found.status = 'pending'
    )
    select status as before from found`;
  return row?.before;
}

/** The newest commands of a device of these worlds, newest first; at equal times the higher id first. */
export async function selectCommands(
  sql: Sql,
  worldIds: readonly number[],
  imei: string,
  statuses: readonly CommandStatus[],
  limit: number,
): Promise<Command[]> {
  const rows = await sql<
    { id: number; type: string; status: CommandStatus; queued_at: Date; sent_at: Date | null }[]
  >`
    select c.id, c.type, c.status, c.queued_at, c.sent_at
    from command c join device d on d.id = c.device_id
    where d.imei = ${imei} and d.world_id = any(${arrayLiteral(worldIds)}::bigint[])
      and c.status = any(${arrayLiteral(statuses)}::text[])
    order by c.queued_at desc, c.id desc
    limit ${limit}`.named('commands');
  return rows.map((row) => ({
    id: row.id,
    type: row.type,
    status: row.status,
    queuedAtMs: row.queued_at.getTime(),
    sentAtMs: row.sent_at?.getTime() ?? null,
  }));
}
