/** What the console reads of the API; every shape is described in openapi.json. */

export interface Device {
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
  readonly status: 'moving' | 'parked' | 'offline' | 'unknown';
  readonly location: {
    readonly latitude: number;
    readonly longitude: number;
    readonly speed_kmh: number;
    readonly recorded_at: string;
    /** Degrees clockwise from north. */
    readonly heading: number;
  } | null;
  readonly ignition: boolean | null;
}

export interface RemovedDevice {
  readonly imei: string;
  readonly removed: true;
}

export type ChangedDevice = Device | RemovedDevice;

export interface FleetEvent {
  readonly id: number;
  readonly type: string;
  readonly message: string;
  readonly device_imei: string;
  readonly data: {
    readonly position: LatLng;
    readonly areaId?: number;
    readonly event?: string;
    readonly enteredAt?: string;
    readonly dwellSeconds?: number;
  };
  readonly occurred_at: string;
}

export interface HistoryPoint {
  readonly latitude: number;
  readonly longitude: number;
  readonly recorded_at: string;
}

export interface LatLng {
  readonly lat: number;
  readonly lng: number;
}

export type AreaType = 'circle' | 'point' | 'polygon' | 'polyline';

export interface Area {
  readonly id: number;
  readonly name: string;
  readonly type: AreaType;
  readonly color: string;
  readonly center: LatLng | null;
  readonly radius_m: number | null;
  readonly buffer_m: number | null;
  readonly points: readonly LatLng[];
  readonly external_id: string | null;
  readonly dwell_seconds: number;
}

export interface DeviceInArea {
  readonly device: Pick<Device, 'imei' | 'name' | 'plate' | 'status'>;
  readonly since: string;
  /** Null while the minimum stay is not over. */
  readonly entered_at: string | null;
  readonly dwell_left_seconds: number;
}

export interface Backtest {
  readonly entries: number;
  readonly exits: number;
  readonly devices: number;
  /** At most 1000. */
  readonly events: readonly {
    readonly device: string;
    readonly event: 'entry' | 'exit';
    readonly timestamp: string;
  }[];
}

/** Something that the rest of the answer does not show. */
export interface Note {
  readonly code: string;
  readonly message: string;
}

export interface Explanation {
  readonly verdict: string;
  readonly message: string;
  readonly visits: readonly {
    readonly first_inside_at: string;
    readonly last_inside_at: string;
    readonly points: number;
    readonly seconds: number;
    readonly outcome: string;
  }[];
  readonly gaps: readonly { readonly from: string; readonly to: string }[];
  readonly notes: readonly Note[];
}

export interface Key {
  readonly id: number;
  readonly name: string;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly allowlist: readonly string[];
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
}

export interface Webhook {
  /** Null unless it gets no new deliveries. */
  readonly paused: { readonly reason: string; readonly since: string } | null;
  readonly id: number;
  readonly url: string;
  readonly events: readonly string[];
  readonly active: boolean;
}

export interface Delivery {
  readonly id: string;
  readonly event_type: string;
  readonly status: 'pending' | 'delivered' | 'failed' | 'exhausted' | 'requeued';
  readonly attempts: number;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly created_at: string;
}

export type AccountUsage = Readonly<
  Record<'areas' | 'vertices' | 'stays', { readonly used: number; readonly limit: number }>
>;

export interface DeliverySummary {
  readonly total: number;
  readonly delivered: number;
  readonly exhausted: number;
}

export interface FieldError {
  readonly field: string | null;
  readonly code: string;
  readonly message: string;
}
