import type { WritePorts } from '../../flows/feed/writeWorlds.ts';
import type { Sql } from '../../store/sql/sql.ts';

/** Reads of an account's calls, on its share of the connections: nobody else waits for them. */
export interface ReadPorts {
  readonly reads: (accountId: number) => Sql;
}

/** The same for its writes. */
export interface ChangePorts {
  readonly writes: (accountId: number) => WritePorts;
}
