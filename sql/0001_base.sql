-- The foundation: who may look (plans, organizations, accounts, keys), what is tracked (devices, positions,
-- commands, events), and how pods learn of each other's writes (worlds, change feed, pods).

-- One row: names this database, so that several deployments can share one Redis without mixing their keys.
create table instance (
  id uuid primary key default gen_random_uuid(),
  only_row boolean not null default true unique check (only_row)
);
insert into instance default values;

create table plan (
  name text primary key,
  history_days integer not null check (history_days between 1 and 3650)
);
insert into plan (name, history_days) values ('basic', 30), ('pro', 180), ('enterprise', 730);

-- A world is one tenant's set of resources: an account's private ones, or an organization's shared ones.
-- Every resource lives in exactly one; a key looks into at most two. Version rises with every change that
-- must hold from the next call on (keys, owners, devices, areas), never with positions.
create table world (
  id bigint generated always as identity primary key,
  version bigint not null default 1
);

create table organization (
  id bigint generated always as identity primary key,
  name text not null unique check (name <> ''),
  world_id bigint not null unique references world,
  created_at timestamptz not null default now()
);

create table account (
  id bigint generated always as identity primary key,
  email text not null unique check (email = lower(email)),
  name text not null,
  organization_id bigint references organization,
  plan text not null default 'pro' references plan,
  active boolean not null default true,
  password_hash text,
  world_id bigint not null unique references world,
  created_at timestamptz not null default now()
);
create index account_organization on account (organization_id);

create table api_key (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  name text,
  fingerprint bytea not null unique check (length(fingerprint) = 32),
  prefix text not null check (length(prefix) = 6),
  scopes text[] not null,
  allowlist text[] not null default '{}' check (cardinality(allowlist) <= 50),
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz
);
create index api_key_account on api_key (account_id);

create table device (
  id bigint generated always as identity primary key,
  imei text not null unique check (imei ~ '^[0-9]{14,17}$'),
  world_id bigint not null references world,
  name text,
  plate text,
  device_model text,
  groups text[] not null default '{}',
  updated_at timestamptz not null default clock_timestamp()
);
create index device_world on device (world_id, imei);

-- The newest evaluated point of a device and what its events are judged by. Locking this row is what serializes
-- the points of one device across pods. It is rewritten with every point: no index but the key, room on each
-- page, so that updates stay on their page (HOT).
create table device_state (
  device_id bigint primary key references device,
  recorded_at timestamptz,
  latitude double precision,
  longitude double precision,
  altitude_m double precision,
  speed_kmh double precision,
  heading double precision,
  satellites integer,
  odometer_km double precision,
  ignition boolean,
  alarms text[] not null default '{}',
  rfid text,
  slow_since timestamptz,
  parked_at timestamptz,
  moved_at timestamptz
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Every stored point. Identity is (device, time to the millisecond). Partitions hold one ISO week each and are
-- made when their first point arrives; retention drops whole partitions.
create table position (
  device_id bigint not null,
  recorded_at timestamptz not null,
  latitude double precision not null,
  longitude double precision not null,
  altitude_m double precision not null,
  speed_kmh double precision not null,
  heading double precision not null,
  satellites integer not null,
  odometer_km double precision,
  primary key (device_id, recorded_at)
) partition by range (recorded_at);

create table command (
  id bigint generated always as identity primary key,
  device_id bigint not null references device,
  type text not null,
  status text not null default 'pending' check (status in ('pending', 'sent', 'canceled')),
  queued_at timestamptz not null default clock_timestamp(),
  sent_at timestamptz
);
create index command_queue on command (device_id, queued_at desc, id desc);

-- Device events and, later, geofence events. world_id is the world that may read it.
create table fleet_event (
  id bigint generated always as identity primary key,
  world_id bigint not null references world,
  device_id bigint not null references device,
  device_imei text not null,
  type text not null,
  message text not null,
  data jsonb not null,
  read boolean not null default false,
  occurred_at timestamptz not null
);
create index fleet_event_world on fleet_event (world_id, occurred_at desc, id desc);
create index fleet_event_device on fleet_event (device_imei, world_id, occurred_at desc, id desc);
create index fleet_event_type on fleet_event (world_id, type, occurred_at desc, id desc);

-- The change feed. A reader's cursor is a snapshot: it takes the rows that are committed in the present one and
-- were not in its own, so a transaction that commits late is never skipped and holds nobody up. Rows of kind
-- 'positions' carry the moved devices in payload; all others name an entity whose current row is read again.
create table change (
  xid xid8 not null default pg_current_xact_id(),
  id bigint generated always as identity,
  kind text not null,
  world_id bigint,
  world_version bigint,
  entity_id bigint,
  payload bytea,
  at timestamptz not null default clock_timestamp(),
  primary key (xid, id)
);
-- Every change up to this transaction may have been pruned: a reader whose snapshot does not show it loads anew.
create table change_horizon (
  xid xid8 not null,
  only_row boolean primary key default true check (only_row)
);
insert into change_horizon (xid) values (pg_current_xact_id());

-- Running pods and how far each has followed the feed: everything that was committed in that snapshot is applied.
create table pod (
  id uuid primary key,
  feed_cursor pg_snapshot not null,
  started_at timestamptz not null default clock_timestamp(),
  seen_at timestamptz not null default clock_timestamp()
);
