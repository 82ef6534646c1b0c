import type { WritePorts } from '../changelog/writeWorlds.ts';
import type { EventCuts } from '../events/eventParts.sql.ts';
import type { Sql } from '../postgres/sql.ts';

/** Reads of an account's calls, on its share of the connections: nobody else waits for them. */
/** The same for its events. */
export interface EventPorts extends ReadPorts {
  readonly eventCuts: EventCuts;
}

export interface ReadPorts {
  readonly reads: (accountId: number) => Sql;
}

/** The same for its writes. */
export interface ChangePorts {
  readonly writes: (accountId: number) => WritePorts;
}
