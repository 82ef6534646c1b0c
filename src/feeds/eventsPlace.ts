import type { ServerState } from '../changelog/servers.ts';
import type { Direction, EventType } from '../events/fleetEvent.ts';
import type { RecordedEvent } from './eventFeed.sql.ts';
import type { EventsRead } from './readerCursor.ts';

export interface EventFilters {
  readonly type: EventType | null;
  readonly direction: Direction | null;
  readonly imei: string | null;
}

export interface EventFeedRequest extends EventFilters {
  readonly cursor: string | null;
  readonly fromMs: number | null;
  readonly limit: number;
  readonly waitMs: number;
  /** Calls `listener` when the caller hangs up. */
  readonly whenLeft?: ((listener: () => void) => void) | undefined;
}

/** How far a reader has come, and on which server. */
export interface EventsPlace {
  readonly read: EventsRead;
  readonly server: ServerState;
}

export interface EventsStep extends EventsPlace {
  readonly events: readonly RecordedEvent[];
  readonly hasMore: boolean;
}
