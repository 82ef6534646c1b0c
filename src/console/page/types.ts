// Made from the description of the API by "npm run types".
// biome-ignore-all format: as it was made

type AlarmEvent = {
  readonly id: number;
  readonly type: 'tamper_alert' | 'alarm';
  readonly message: string;
  readonly device_imei: string;
  readonly data: { readonly position: { readonly lat: number; readonly lng: number; }; readonly alarm: string; };
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
  readonly metrics: { readonly area_m2: number | null; readonly perimeter_m: number | null; readonly length_m: number | null; };
  readonly created_at: string | null;
  readonly center: { readonly lat: number; readonly lng: number; } | null;
  readonly radius_m: number | null;
  readonly buffer_m: number | null;
  readonly points: readonly LatLng[];
  readonly bounds: { readonly south: number; readonly west: number; readonly north: number; readonly east: number; } | null;
};

export type AreaDevice = {
  readonly device: { readonly id: string; readonly imei: string; readonly name: string | null; readonly plate: string | null; readonly status: 'moving' | 'parked' | 'offline' | 'unknown'; };
  readonly since: string;
  readonly entered_at: string | null;
  readonly dwell_left_seconds: number;
  readonly last_point_at: string;
};

export type AreaFieldError = {
  readonly field: 'dry_run' | 'name' | 'type' | 'color' | 'center' | 'radius_m' | 'buffer_m' | 'points' | 'external_id' | 'dwell_seconds' | 'geojson' | 'Idempotency-Key' | null;
  readonly code: 'INVALID_BODY' | 'INVALID' | 'REQUIRED' | 'TOO_LONG' | 'INVALID_COORDINATES' | 'OUT_OF_RANGE' | 'TOO_FEW_POINTS' | 'TOO_MANY_POINTS' | 'SELF_INTERSECTION' | 'MISMATCH' | 'TAKEN' | 'INVALID_GEOJSON' | 'LIMIT_REACHED';
  readonly message: string;
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

export type AreaWarning = {
  readonly code: 'warnHolesIgnored' | 'warnSimplifiedDuplicates' | 'warnVerySmallArea' | 'warnVeryLargeArea';
  readonly message: string;
};

type BacktestEvent = {
  readonly area_id: number | null;
  readonly device: string;
  readonly event: 'entry' | 'exit';
  readonly position: LatLng;
  readonly timestamp: string;
};

export type BacktestNote = {
  readonly code: 'history_trimmed' | 'not_recorded' | 'area_did_not_exist' | 'area_changed';
  readonly message: string;
  readonly at?: string;
};

export type BacktestResult = {
  readonly dwell_seconds: number;
  readonly entries: number;
  readonly exits: number;
  readonly devices: number;
  readonly inside_seconds: number;
  readonly events: readonly BacktestEvent[];
  readonly against?: { readonly same: number; readonly new: number; readonly gone: number; };
};

export type ChangedDevice = {
  readonly id: string;
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
  readonly status: 'moving' | 'parked' | 'offline' | 'unknown';
  readonly device_model: string | null;
  readonly odometer_km: number | null;
  readonly groups: readonly string[];
  readonly location: { readonly latitude: number; readonly longitude: number; readonly speed_kmh: number; readonly recorded_at: string; readonly heading: number; readonly altitude_m: number; } | null;
  readonly updated_at: string | null;
  readonly ignition: boolean | null;
};

export type Delivery = {
  readonly id: string;
  readonly webhook_id: number;
  readonly event_id: string;
  readonly event_type: 'geofence_enter' | 'geofence_exit' | 'ignition_on' | 'ignition_off' | 'parking_start' | 'parking_end' | 'tamper_alert' | 'rfid' | 'alarm' | 'webhook_paused' | 'ping';
  readonly status: 'pending' | 'delivered' | 'failed' | 'exhausted' | 'requeued';
  readonly attempts: number;
  readonly next_attempt_at: string | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly last_duration_ms: number | null;
  readonly created_at: string;
  readonly delivered_at: string | null;
};

export type DeliverySummary = {
  readonly window_hours: 24;
  readonly total: number;
  readonly delivered: number;
  readonly failed: number;
  readonly exhausted: number;
  readonly pending: number;
  readonly success_rate: number | null;
  readonly attempts: number;
  readonly duration_ms: { readonly p50: number | null; readonly p95: number | null; readonly p99: number | null; };
};

type ExplainedPoint = {
  readonly recorded_at: string;
  readonly received_at: string | null;
  readonly late: boolean | null;
  readonly inside: boolean;
  readonly distance_m: number;
  readonly decision: 'outside' | 'pending' | 'entry' | 'inside' | 'passed' | 'exit' | 'late' | 'not_watched' | 'area_did_not_exist';
};

export type Explanation = {
  readonly verdict: 'entered' | 'left' | 'inside_pending' | 'too_short' | 'never_inside' | 'between_points' | 'no_points' | 'not_watched' | 'area_did_not_exist';
  readonly message: string;
  readonly closest: { readonly distance_m: number; readonly at: string; } | null;
  readonly visits: readonly AreaVisit[];
  readonly gaps: readonly HistoryGap[];
  readonly notes: readonly ExplanationNote[];
  readonly steps?: readonly ExplainedPoint[];
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
  readonly data: { readonly position: { readonly lat: number; readonly lng: number; }; readonly areaId: number; readonly areaName: string; readonly event: 'entry' | 'exit'; readonly enteredAt: string; readonly dwellSeconds: number; readonly staySeconds?: number; };
  readonly read: boolean;
  readonly occurred_at: string;
};

type HistoryGap = {
  readonly from: string;
  readonly to: string;
  readonly seconds: number;
};

export type HistoryPoint = {
  readonly latitude: number;
  readonly longitude: number;
  readonly speed_kmh: number;
  readonly heading: number;
  readonly satellites: number;
  readonly recorded_at: string;
};

type IgnitionEvent = {
  readonly id: number;
  readonly type: 'ignition_on' | 'ignition_off';
  readonly message: string;
  readonly device_imei: string;
  readonly data: { readonly position: { readonly lat: number; readonly lng: number; }; readonly ignition: boolean; };
  readonly read: boolean;
  readonly occurred_at: string;
};

export type LatLng = {
  readonly lat: number;
  readonly lng: number;
};

type ParkingEvent = {
  readonly id: number;
  readonly type: 'parking_start' | 'parking_end';
  readonly message: string;
  readonly device_imei: string;
  readonly data: { readonly position: { readonly lat: number; readonly lng: number; }; readonly parked_at: string; };
  readonly read: boolean;
  readonly occurred_at: string;
};

export type RemovedDevice = {
  readonly id: string;
  readonly imei: string;
  readonly removed: true;
};

type RfidEvent = {
  readonly id: number;
  readonly type: 'rfid';
  readonly message: string;
  readonly device_imei: string;
  readonly data: { readonly position: { readonly lat: number; readonly lng: number; }; readonly rfid: string; };
  readonly read: boolean;
  readonly occurred_at: string;
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
  readonly signature_version: 'v1';
  readonly created_at: string;
  readonly updated_at: string;
};

export type WebhookFieldError = {
  readonly field: 'url' | 'description' | 'events' | 'retry_policy' | 'max_retries' | 'active' | null;
  readonly code: 'INVALID_BODY' | 'LIMIT_REACHED' | 'REQUIRED' | 'INVALID' | 'TOO_LONG' | 'OUT_OF_RANGE';
  readonly message: string;
};
