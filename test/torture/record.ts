import type { RoadArea } from '../support/ingest/road.ts';

/** All that a run of the simulator asked and was answered. Times are milliseconds of its own clock, which never goes back. */
export interface RunRecord {
  readonly processes: readonly StartedProcess[];
  readonly losses: readonly Loss[];
  readonly calls: readonly RecordedCall[];
  readonly deliveries: readonly RecordedDelivery[];
  /** Areas that were there before the first point and never changed. */
  readonly fixedAreas: readonly { readonly id: number; readonly area: RoadArea }[];
  /** Areas without a dwell that move along the road, and the device that reports from one place of it. */
  readonly movingAreas: readonly MovingArea[];
  /** What the API says when everything has come to rest. */
  readonly rest: RestState;
}

/** A process of a pod. Processes are numbered in the order of their starts. */
export interface StartedProcess {
  readonly process: number;
  readonly pod: number;
  /** What was acknowledged before is in Postgres when it reads its memory from there. */
  readonly startedAtMs: number;
}

/**
 * Pods could not ask Postgres or Redis, or that had forgotten what it knew. It ends when they must have noticed that
 * all is well.
 */
export interface Loss {
  readonly of: 'postgres' | 'redis';
  /** Null: of all pods. */
  readonly pod: number | null;
  readonly beginMs: number;
  readonly endMs: number;
}

export interface MovingArea {
  readonly id: number;
  /** Of its place; see `RecordedWrite`. */
  readonly register: string;
  readonly imei: string;
  readonly place: number;
}

interface Call {
  /** Method and path. */
  readonly what: string;
  readonly beginMs: number;
  /** When the answer was complete, or the caller gave up. */
  readonly endMs: number;
  /** The process that was asked; null: a command, or the pod was started anew meanwhile. */
  readonly process: number | null;
  /** Null: there was no answer. What was asked may have happened, or may happen yet. */
  readonly status: number | null;
  /** Of an error. */
  readonly code?: string;
}

export type RecordedCall = RecordedPoints | RecordedWrite | RecordedRead | RecordedPositions | RecordedPage;

/** A batch of points. One without an answer may be sent again, as another call with the same number. */
export interface RecordedPoints extends Call {
  readonly kind: 'points';
  readonly batch: number;
  readonly points: readonly RecordedPoint[];
  /** Indexes of points that were refused. */
  readonly rejected: readonly number[];
}

export interface RecordedPoint {
  readonly imei: string;
  readonly atMs: number;
  /** On the road (test/support/ingest/road.ts). */
  readonly place: number;
}

/** Something that an administrator sets, and that holds on every pod from the next call on. Each has one writer. */
export interface Register {
  readonly register: string;
  readonly value: string;
}

export interface RecordedWrite extends Call {
  readonly kind: 'write';
  readonly sets: readonly Register[];
}

/** A call from whose answer values of registers can be seen. */
export interface RecordedRead extends Call {
  readonly kind: 'read';
  readonly finds: readonly Register[];
}

/** Positions that a call was answered with; null: the device has none. */
export interface RecordedPositions extends Call {
  readonly kind: 'positions';
  readonly finds: readonly { readonly imei: string; readonly atMs: number | null }[];
}

export type Feed = 'events' | 'points' | 'devices';

/** A page that a follower took, or what came over a stream until it ended. The pages of a follower follow each other. */
export interface RecordedPage extends Call {
  readonly kind: 'page';
  readonly feed: Feed;
  readonly follower: string;
  readonly events: readonly number[];
  readonly points: readonly { readonly imei: string; readonly atMs: number }[];
  readonly devices: readonly { readonly imei: string; readonly atMs: number | null }[];
  /** It said that there was no more. Of a stream it is not known. */
  readonly isLast: boolean;
}

/** A request that a receiver of webhooks got. */
export interface RecordedDelivery {
  readonly endpoint: string;
  readonly deliveryId: string;
  readonly attempt: number;
  /** When its pod began the attempt, by the clock of the pod. */
  readonly timestamp: string;
  /** Numbers the connections of receivers. */
  readonly connection: number;
  readonly idempotencyKey: string;
  /** Of the body. */
  readonly eventId: string;
  readonly fleetEventId: number;
  readonly body: string;
  readonly beginMs: number;
  /** When the sender could know the answer or had left. */
  readonly endMs: number;
  /** Null: the receiver hung up. */
  readonly status: number | null;
}

export interface RestState {
  readonly points: readonly { readonly imei: string; readonly atMs: number }[];
  /** In the order of production. */
  readonly events: readonly RestEvent[];
  /** Newest positions as each running process gives them. */
  readonly positions: readonly {
    readonly process: number;
    readonly devices: readonly { readonly imei: string; readonly atMs: number | null }[];
  }[];
  readonly deliveries: readonly {
    readonly endpoint: string;
    readonly id: string;
    readonly eventId: string;
    readonly status: string;
  }[];
}

export interface RestEvent {
  readonly id: number;
  readonly imei: string;
  readonly areaId: number;
  readonly event: string;
  readonly occurredAtMs: number;
  readonly enteredAtMs: number;
}

/** A promise that a record shows to be broken. */
export interface Violation {
  readonly rule: Rule;
  readonly message: string;
}

export type Rule =
  | 'every call is answered as described'
  | 'an acknowledged point is stored once'
  | 'nothing is stored that nobody sent'
  | 'events are those of a naive replay'
  | 'a point is evaluated against the areas of its time'
  | 'an acknowledged write holds from the next call on'
  | 'a pod shows the points that it took, and never goes back'
  | 'all pods show the same in the end'
  | 'a feed has no gap'
  | 'a feed repeats nothing'
  | 'a feed keeps the order of a device'
  | 'a feed of devices is as new as its pod and never goes back'
  | 'a webhook is delivered at least once'
  | 'a delivery keeps its ids and bytes'
  | 'attempts are numbered in order'
  | 'an endpoint is asked one at a time';

/** Whether a call was answered with success. */
export const isAcknowledged = ({ status }: Pick<Call, 'status'>): boolean => status !== null && status < 300;

/** Whether it is not known if a call had an effect. */
export const isDoubtful = ({ status }: Pick<Call, 'status'>): boolean => status === null || status >= 500;
