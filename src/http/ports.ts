import type { WritePorts } from '../changelog/writeWorlds.ts';
import type { Sql } from '../postgres/sql.ts';

/** Reads of an account's calls, on its share of the connections, so that nobody else waits for them. */
export interface ReadPorts {
  readonly reads: (accountId: number) => Sql;
}

/** Writes of an account's calls, on its share of the connections. */
export interface ChangePorts {
  readonly writes: (accountId: number) => WritePorts;
}
