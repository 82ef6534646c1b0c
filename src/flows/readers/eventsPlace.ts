import type { EventType } from '../../engine/eventTypes.ts';
import type { EventsRead } from '../../feeds/readerCursor.ts';
import type { ServerMark } from '../../feeds/serverMark.ts';
import type { RecordedEvent } from '../../store/devices/eventFeed.ts';
import type { Direction } from '../../store/devices/fleetEvents.ts';

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
  readonly server: ServerMark;
}

export interface EventsStep extends EventsPlace {
  readonly events: readonly RecordedEvent[];
  readonly hasMore: boolean;
}
