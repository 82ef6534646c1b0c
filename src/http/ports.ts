import type { WritePorts } from '../changelog/writeWorlds.ts';
import type { Sql } from '../postgres/sql.ts';

export interface ReadPorts {
  readonly reads: (accountId: number) => Sql;
}

/** The same for its writes. */
export interface ChangePorts {
  readonly writes: (accountId: number) => WritePorts;
}
