-- Geofence areas, and the answers kept for repeated creations.

-- world_id says who sees an area, account_id who made it: its external_id is unique among that account's areas,
-- also after it was shared. Vertices are little-endian doubles (lat, lng, lat, lng, …): one value to read, where an
-- array would be parsed number by number. Metrics, bounds and the centroid of polygons are computed once per write.
create table area (
  id bigint generated always as identity primary key,
  world_id bigint not null references world,
  account_id bigint not null references account,
  name text not null,
  color text not null,
  type text not null check (type in ('circle', 'polygon', 'polyline', 'point')),
  center_lat double precision,
  center_lng double precision,
  radius_m double precision,
  buffer_m double precision,
  points bytea not null,
  external_id text,
  dwell_seconds integer not null check (dwell_seconds between 0 and 86400),
  area_m2 double precision,
  perimeter_m double precision,
  length_m double precision,
  south double precision not null,
  west double precision not null,
  north double precision not null,
  east double precision not null,
  created_at timestamptz not null default clock_timestamp(),
  -- Rises with every write of this row: memory keeps the newest it has seen.
  revision bigint not null default 1,
  constraint area_external_id unique (account_id, external_id)
);
alter table area alter column points set storage external;
create index area_world on area (world_id, id);

-- A 201 of POST /areas under an Idempotency-Key, kept with the area in one transaction.
create table idempotent_answer (
  account_id bigint not null references account,
  key text not null,
  body_hash bytea not null,
  area_id bigint,
  answer text,
  created_at timestamptz not null default clock_timestamp(),
  primary key (account_id, key)
);
create index idempotent_answer_age on idempotent_answer (created_at);
