// Made from the description of the API by "npm run types".
// biome-ignore-all format: as it was made

type AlarmEvent = {
  readonly id: number;
  readonly type: 'tamper_alert' | 'alarm';
  readonly message: string;
  readonly device_imei: string;
  readonly data: { readonly position: LatLng; readonly alarm: string; };
  readonly read: boolean;
  readonly occurred_at: string;
};

export type Area = {
  readonly id: number;
  readonly name: string;
  readonly color: string;
  readonly type: 'circle' | 'polygon' | 'polyline' | 'point';
  readonly external_id: string | null;
  readonly dwell_seconds: number;
  readonly center: LatLng | null;
  readonly radius_m: number | null;
  readonly buffer_m: number | null;
  readonly points: readonly LatLng[];
};

export type AreaDevice = {
  readonly device: { readonly imei: string; readonly name: string | null; readonly plate: string | null; };
  readonly since: string;
  readonly entered_at: string | null;
  readonly dwell_left_seconds: number;
};

export type AreaEvent = {
  readonly id: number;
  readonly area_id: number;
  readonly device: string;
  readonly event: 'entry' | 'exit';
  readonly position: LatLng;
  readonly timestamp: string;
};

export type AreaOverlap = {
  readonly area: { readonly id: number; readonly name: string; };
  readonly share: number;
  readonly share_of_other: number;
};

type AreaVisit = {
  readonly first_inside_at: string;
  readonly last_inside_at: string;
  readonly points: number;
  readonly seconds: number;
  readonly deepest_m: number | null;
  readonly outcome: 'entry' | 'entry_and_exit' | 'too_short' | 'pending';
  readonly event_ids: readonly number[];
};

type BacktestEvent = {
  readonly area_id: number | null;
  readonly device: string;
  readonly event: 'entry' | 'exit';
  readonly position: LatLng;
  readonly timestamp: string;
};

export type BacktestResult = {
  readonly dwell_seconds: number;
  readonly entries: number;
  readonly exits: number;
  readonly devices: number;
  readonly events: readonly BacktestEvent[];
};

export type ChangedDevice = {
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
  readonly status: 'moving' | 'parked' | 'offline' | 'unknown';
  readonly groups: readonly string[];
  readonly location: { readonly latitude: number; readonly longitude: number; readonly speed_kmh: number; readonly recorded_at: string; readonly heading: number; } | null;
  readonly ignition: boolean | null;
};

export type Delivery = {
  readonly id: string;
  readonly event_type: 'geofence_enter' | 'geofence_exit' | 'ignition_on' | 'ignition_off' | 'parking_start' | 'parking_end' | 'tamper_alert' | 'rfid' | 'alarm' | 'webhook_paused' | 'ping';
  readonly status: 'pending' | 'delivered' | 'failed' | 'exhausted' | 'requeued';
  readonly attempts: number;
  readonly next_attempt_at: string | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly created_at: string;
};

export type DeliveryAttempt = {
  readonly attempt: number;
  readonly at: string | null;
  readonly status_code: number | null;
  readonly error: string | null;
  readonly duration_ms: number | null;
  readonly answer: string | null;
};

export type DeliveryDetail = {
  readonly id: string;
  readonly event_id: string;
  readonly attempts: number;
  readonly delivered_at: string | null;
  readonly in_flight: boolean;
  readonly payload: string;
  readonly attempt_log: readonly DeliveryAttempt[];
};

export type DeliverySummary = {
  readonly total: number;
  readonly delivered: number;
  readonly exhausted: number;
};

export type Device = {
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
  readonly status: 'moving' | 'parked' | 'offline' | 'unknown';
  readonly groups: readonly string[];
  readonly location: { readonly latitude: number; readonly longitude: number; readonly speed_kmh: number; readonly recorded_at: string; } | null;
};

export type DevicePresence = {
  readonly device: { readonly imei: string; readonly name: string | null; readonly plate: string | null; };
  readonly first_at: string;
  readonly last_at: string;
  readonly points: number;
  readonly seconds: number;
};

export type Explanation = {
  readonly verdict: 'entered' | 'left' | 'inside_pending' | 'too_short' | 'never_inside' | 'between_points' | 'no_points' | 'not_watched' | 'area_did_not_exist';
  readonly message: string;
  readonly visits: readonly AreaVisit[];
  readonly gaps: readonly HistoryGap[];
  readonly notes: readonly ExplanationNote[];
};

type ExplanationNote = {
  readonly code: 'late_points_ignored' | 'area_changed' | 'dwell_changed' | 'gap' | 'history_trimmed' | 'stay_quota' | 'not_recorded';
  readonly message: string;
  readonly at?: string;
};

export type FleetEvent = GeofenceEvent | IgnitionEvent | ParkingEvent | AlarmEvent | RfidEvent;

type GeofenceEvent = {
  readonly id: number;
  readonly type: 'geofence';
  readonly message: string;
  readonly device_imei: string;
  readonly data: { readonly position: LatLng; readonly areaId: number; readonly areaName: string; readonly event: 'entry' | 'exit'; readonly enteredAt: string; readonly dwellSeconds: number; readonly staySeconds?: number; };
  readonly read: boolean;
  readonly occurred_at: string;
};

type HistoryGap = {
  readonly from: string;
  readonly to: string;
  readonly seconds: number;
};

export type HistoryPeriod = {
  readonly from: string | null;
  readonly to: string | null;
  readonly points: number;
  readonly distance_km: number;
  readonly moving_seconds: number;
  readonly parked_seconds: number;
  readonly gap_seconds: number;
  readonly max_speed_kmh: number | null;
};

export type HistoryPoint = {
  readonly latitude: number;
  readonly longitude: number;
  readonly speed_kmh: number;
  readonly recorded_at: string;
};

type IgnitionEvent = {
  readonly id: number;
  readonly type: 'ignition_on' | 'ignition_off';
  readonly message: string;
  readonly device_imei: string;
  readonly data: { readonly position: LatLng; readonly ignition: boolean; };
  readonly read: boolean;
  readonly occurred_at: string;
};

export type LatLng = {
  readonly lat: number;
  readonly lng: number;
};

export type LeftOut = {
  readonly events: number;
  readonly is_complete: boolean;
};

export type NearDevice = {
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
  readonly status: 'moving' | 'parked' | 'offline' | 'unknown';
  readonly distance_km: number;
};

type ParkingEvent = {
  readonly id: number;
  readonly type: 'parking_start' | 'parking_end';
  readonly message: string;
  readonly device_imei: string;
  readonly data: { readonly position: LatLng; readonly parked_at: string; };
  readonly read: boolean;
  readonly occurred_at: string;
};

export type RemovedDevice = {
  readonly imei: string;
  readonly removed: true;
};

type RfidEvent = {
  readonly id: number;
  readonly type: 'rfid';
  readonly message: string;
  readonly device_imei: string;
  readonly data: { readonly position: LatLng; readonly rfid: string; };
  readonly read: boolean;
  readonly occurred_at: string;
};

export type Share = {
  readonly id: number;
  readonly name: string | null;
  readonly devices: readonly string[];
  readonly expires_at: string;
  readonly end_reason: 'deleted' | 'arrived' | null;
};

export type SharedFleet = {
  readonly name: string | null;
  readonly expires_at: string;
  readonly devices: readonly { readonly id: number; readonly name?: string | null; readonly plate?: string | null; readonly place: 'known' | 'private' | 'unknown'; readonly location: { readonly latitude: number; readonly longitude: number; readonly heading: number; readonly recorded_at: string; readonly speed_kmh?: number; } | null; readonly trail?: readonly (readonly (readonly number[])[])[]; }[];
};

export type Webhook = {
  readonly id: number;
  readonly url: string;
  readonly description: string | null;
  readonly events: readonly ('*' | 'geofence_enter' | 'geofence_exit' | 'ignition_on' | 'ignition_off' | 'parking_start' | 'parking_end' | 'tamper_alert' | 'rfid' | 'alarm' | 'webhook_paused' | 'ping')[];
  readonly retry_policy: 'none' | 'fixed' | 'exponential';
  readonly max_retries: number;
  readonly active: boolean;
  readonly paused: { readonly reason: 'endpoint_quota' | 'account_quota' | 'failing'; readonly since: string; } | null;
  readonly failing: { readonly since: string; readonly attempts: number; readonly next_attempt_at: string | null; } | null;
};
