-- The data model of the service, from tenants to what pods tell each other.
--
--   tenants    plan, world, organization, account, membership_end, api_key, session, share, login_window,
--              login_address
--   devices    device, device_usage, device_move, device_removal, device_state, command
--   areas      area, area_usage, area_revision, idempotent_answer
--   points     position, late_point, followed_world, packed_points, packing, driven_cells, track_tile, track_week, row_box,
--              row_boxing
--   events     fleet_event, event_part
--   webhooks   webhook, webhook_delivery, webhook_outbox_batch, webhook_outbox, webhook_left_out, webhook_removed
--   server     instance, server_start, server_session
--   pods       change, change_horizon, pod, write_probe
--
-- All times are those of this database's clock, unless a column says otherwise. Lengths are metres, speeds km/h, headings
-- degrees from north, coordinates WGS84 degrees.

-- Tenants ------------------------------------------------------------------------------------------------------------

-- What an account may have. Without these limits one account could fill the memory of every pod.
create table plan (
  name text primary key,
  -- For how many days points can be read.
  history_days integer not null check (history_days between 1 and 3650),
  -- Areas that the account has made, shared ones included, and the vertices of them. As many vertices may be stored of
  -- their past shapes.
  max_areas integer not null default 20000 check (max_areas >= 0),
  max_area_vertices bigint not null default 4000000 check (max_area_vertices >= 0),
  -- Devices in a world that the account imports into.
  max_devices bigint not null default 5000000 check (max_devices >= 0),
  -- Idempotency-Keys that are stored at a time.
  max_idempotency_keys integer not null default 10000 check (max_idempotency_keys >= 0),
  -- Open stays of devices in the areas that the account has made, shared ones included.
  max_stays bigint not null default 2000000 check (max_stays >= 0),
  -- Deliveries that wait for an attempt: of the account, and of one of its endpoints. They are not counted with every
  -- delivery: a pod counts an account again when it has created a thousand deliveries of one of its endpoints.
  max_waiting_deliveries bigint not null default 1000000 check (max_waiting_deliveries >= 0),
  max_waiting_per_webhook bigint not null default 100000 check (max_waiting_per_webhook >= 0)
);
insert into plan (name, history_days) values ('basic', 30), ('pro', 180), ('enterprise', 730);

-- The resources of one tenant: the private ones of an account, or the shared ones of an organization. Every resource is in
-- exactly one world, and a key can see at most two. Worlds are never deleted.
create table world (
  id bigint generated always as identity primary key,
  -- Rises with every change that must hold from the next call on (keys, owners, devices, areas), never with positions.
  version bigint not null default 1
);

create table organization (
  id bigint generated always as identity primary key,
  name text not null unique check (name <> ''),
  -- Its shared resources.
  world_id bigint not null unique references world,
  created_at timestamptz not null default now()
);

create table account (
  id bigint generated always as identity primary key,
  email text not null unique check (email = lower(email)),
  name text not null,
  organization_id bigint references organization,
  plan text not null default 'pro' references plan,
  -- False: all keys of the account are refused.
  active boolean not null default true,
  -- Null: nobody can log in with a password.
  password_hash text,
  -- The sessions of a viewer read and do not write. Its keys are what their scopes say.
  role text not null default 'member' check (role in ('member', 'viewer')),
  -- Its private resources.
  world_id bigint not null unique references world,
  created_at timestamptz not null default now()
);
create index account_organization on account (organization_id);

-- Former memberships, for explanations of the past: the organization's world that an account saw until a time (null: none).
-- The present one is in account.
create table membership_end (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  organization_world_id bigint,
  until timestamptz not null
);
create index membership_end_account on membership_end (account_id, until);
create index membership_end_until on membership_end (until);

create function keep_membership() returns trigger language plpgsql as $$
begin
  insert into membership_end (account_id, organization_world_id, until)
  values (old.id, (select world_id from organization where id = old.organization_id),
    date_trunc('milliseconds', clock_timestamp()));
  return null;
end
$$;
create trigger account_left after update on account for each row
  when (old.organization_id is distinct from new.organization_id) execute function keep_membership();

create table api_key (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  name text,
  -- SHA-256 of the key. The key itself is shown once and not stored.
  fingerprint bytea not null unique check (length(fingerprint) = 32),
  -- The beginning of the key, by which people recognize it.
  prefix text not null check (length(prefix) = 6),
  scopes text[] not null,
  -- Addresses and networks that may use the key; empty: all.
  allowlist text[] not null default '{}' check (cardinality(allowlist) <= 50),
  -- It sees only devices of these groups; empty: all.
  groups text[] not null default '{}' check (cardinality(groups) <= 20),
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  -- From then on it is as if revoked; null: it does not end by itself.
  expires_at timestamptz
);
create index api_key_account on api_key (account_id);
create index api_key_ended on api_key (least(revoked_at, expires_at))
  where least(revoked_at, expires_at) is not null;

-- Sessions of the console. A session is looked up at each of its calls, so its end, a new password and the deactivation of
-- its owner hold at once on every pod.
create table session (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  -- SHA-256 of the token. The token itself is not stored.
  fingerprint bytea not null unique check (length(fingerprint) = 32),
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
create index session_account on session (account_id, id);
create index session_age on session (expires_at);

-- Links that show where some vehicles are, for a time.
create table share (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  -- SHA-256 of the token in the link. The token itself is shown once and not stored.
  fingerprint bytea not null unique check (length(fingerprint) = 32),
  name text,
  -- In the order in which they were named. A device that is deleted stays here.
  device_ids bigint[] not null check (cardinality(device_ids) between 1 and 20),
  -- The share ends when one of the devices enters this area.
  until_area_id bigint,
  delay_seconds integer not null check (delay_seconds between 0 and 3600),
  -- Circles within which a vehicle is not shown: [{lat, lng, radius_m}].
  hide jsonb not null,
  -- What is shown beside the place.
  show text[] not null,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  -- When it ended before its time, and why.
  ended_at timestamptz,
  end_reason text check (end_reason in ('deleted', 'arrived'))
);
create index share_account on share (account_id, id);
create index share_until on share (until_area_id) where until_area_id is not null and ended_at is null;
create index share_end on share (least(ended_at, expires_at));

-- Counts attempts to log in, to limit the guessing of passwords. Counters of a quarter of an hour need not survive a crash.
create unlogged table login_window (
  -- SHA-256 of what is counted: an address, an account, or a pair of both. So nothing that somebody typed is stored, such
  -- as a password in the wrong field. Accounts that do not exist are counted alike.
  subject bytea primary key check (length(subject) = 32),
  attempts integer not null,
  started_at timestamptz not null
);
create index login_window_age on login_window (started_at);

-- Pairs of an account and an address that it has logged in from. Guesses from other addresses cannot lock these out.
create table login_address (
  -- SHA-256 of the pair.
  pair bytea primary key check (length(pair) = 32),
  account_id bigint not null references account,
  seen_at timestamptz not null default clock_timestamp()
);
create index login_address_account on login_address (account_id, seen_at);

-- Devices ------------------------------------------------------------------------------------------------------------

-- Vehicles that are tracked.
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

-- The number of devices in each world, kept by triggers. A writer that is held to a quota locks its row before it looks, so
-- two writers can never pass together. It has no check against negative counts, because a change is written as an insert
-- first, and would be refused as one.
create table device_usage (
  world_id bigint primary key references world,
  devices bigint not null default 0
) with (fillfactor = 50);

-- One function for inserts, updates and deletes. Only the branch that fits is ever planned, since the tables of the others
-- do not exist. Worlds are written in ascending order, so two statements never wait for each other in a circle.
create function count_devices() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into device_usage as u (world_id, devices)
    select world_id, count(*) from after group by world_id order by world_id
    on conflict (world_id) do update set devices = u.devices + excluded.devices;
  elsif tg_op = 'DELETE' then
    insert into device_usage as u (world_id, devices)
    select world_id, -count(*) from before group by world_id order by world_id
    on conflict (world_id) do update set devices = u.devices + excluded.devices;
  else
    insert into device_usage as u (world_id, devices)
    select world_id, sum(devices) from (
      select world_id, 1 as devices from after union all select world_id, -1 from before
    ) as change
    group by world_id having sum(devices) <> 0 order by world_id
    on conflict (world_id) do update set devices = u.devices + excluded.devices;
  end if;
  return null;
end
$$;
create trigger device_inserted after insert on device
  referencing new table as after for each statement execute function count_devices();
create trigger device_updated after update on device
  referencing old table as before new table as after for each statement execute function count_devices();
create trigger device_deleted after delete on device
  referencing old table as before for each statement execute function count_devices();

-- Former worlds of devices, for explanations of the past: the world that a device was in until a time. The present one is in
-- device.
create table device_move (
  id bigint generated always as identity primary key,
  device_id bigint not null,
  world_id bigint not null,
  until timestamptz not null
);
create index device_move_device on device_move (device_id, until);
create index device_move_until on device_move (until);

create function keep_device_move() returns trigger language plpgsql as $$
begin
  insert into device_move (device_id, world_id, until)
  values (old.id, old.world_id, date_trunc('milliseconds', clock_timestamp()));
  return null;
end
$$;
create trigger device_moved after update on device for each row
  when (old.world_id <> new.world_id) execute function keep_device_move();

-- Devices that left a world or were deleted, for readers of the world's changes. The transaction by which a device left is
-- the xmin of its row.
create table device_removal (
  world_id bigint not null,
  device_id bigint not null,
  imei text not null,
  at timestamptz not null default clock_timestamp(),
  primary key (world_id, device_id)
);
create index device_removal_at on device_removal (at);
create index device_removal_device on device_removal (device_id);

create function remember_removals() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    insert into device_removal (world_id, device_id, imei) select world_id, id, imei from before
    on conflict (world_id, device_id) do update set at = excluded.at;
  else
    insert into device_removal (world_id, device_id, imei)
    select b.world_id, b.id, b.imei from before b join after a using (id) where a.world_id <> b.world_id
    on conflict (world_id, device_id) do update set at = excluded.at;
  end if;
  return null;
end
$$;
create trigger device_left after update on device
  referencing old table as before new table as after for each statement execute function remember_removals();
create trigger device_gone after delete on device
  referencing old table as before for each statement execute function remember_removals();

-- The newest point of a device that was evaluated, and what its next point is evaluated against. The lock of this row puts
-- the points of one device in an order across pods. It is rewritten with every point: it has no index but the key, and room
-- on each page, so updates stay on their page (HOT). The last change of a device, for readers of changes, is the xmin of
-- this row or of its row in device, whichever is later.
create table device_state (
  device_id bigint primary key references device,
  -- The point. All null before the first one.
  recorded_at timestamptz,
  latitude double precision,
  longitude double precision,
  altitude_m double precision,
  speed_kmh double precision,
  heading double precision,
  satellites integer,
  -- The last known values, of this point or an earlier one.
  odometer_km double precision,
  ignition boolean,
  -- Of this point and of messages that repeated it.
  alarms text[] not null default '{}',
  rfid text,
  -- What repeated messages of the point have said, as JSON: [latest time of sending in ms, ignitions, tags]. Trackers without
  -- a fix send their last point again, with an alarm, an ignition or a tag that is new. Each of these is reported once,
  -- however often and in whatever order the messages come. Null: the point was not repeated.
  repeats text,
  -- The time of the first of the slow points up to now; null: the newest is fast. parked_at is the same time once the
  -- start of parking was reported.
  slow_since timestamptz,
  parked_at timestamptz,
  -- When the service accepted the point.
  moved_at timestamptz,
  -- The device's open stays in areas, as JSON: [[area id, ms of the first point inside, ms of the confirmed entry or null],
  -- …]. A value instead of a table: there is no second row to lock, and none to delete with an area.
  stays text not null default '[]',
  -- Between which points, by their times, stays did not begin because the plan's limit was reached. Explanations report it.
  stays_refused_from timestamptz,
  stays_refused_until timestamptz,
  -- Rises with every message that changed the state, so that two messages about one position have an order.
  revision bigint not null default 0,
  -- Limits the rate of a device's points: when the points stored so far would end if they came at the highest rate. Null or
  -- past: more may come. This one time is the state of a bucket that drains by the clock.
  rate_until timestamptz
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Commands that are queued for a device.
create table command (
  id bigint generated always as identity primary key,
  device_id bigint not null references device,
  type text not null,
  status text not null default 'pending' check (status in ('pending', 'sent', 'canceled')),
  queued_at timestamptz not null default clock_timestamp(),
  sent_at timestamptz
);
create index command_queue on command (device_id, queued_at desc, id desc);

-- Areas --------------------------------------------------------------------------------------------------------------

-- Geofences.
create table area (
  id bigint generated always as identity primary key,
  -- Who can see the area.
  world_id bigint not null references world,
  -- Who made it.
  account_id bigint not null references account,
  name text not null,
  color text not null,
  type text not null check (type in ('circle', 'polygon', 'polyline', 'point')),
  -- Of circles and points. Points are what the console calls places, and polylines are tracks.
  center_lat double precision,
  center_lng double precision,
  radius_m double precision,
  -- How far from a polyline is still inside.
  buffer_m double precision,
  -- Vertices of polygons and polylines as little-endian doubles: lat, lng, lat, lng, …. An array would be parsed number by
  -- number.
  points bytea not null,
  -- The customer's own id. It is unique among the areas that the account made, also after they were shared.
  external_id text,
  -- The minimum stay that makes an entry.
  dwell_seconds integer not null check (dwell_seconds between 0 and 86400),
  -- Measures and bounds, computed with every write.
  area_m2 double precision,
  perimeter_m double precision,
  length_m double precision,
  south double precision not null,
  west double precision not null,
  north double precision not null,
  east double precision not null,
  created_at timestamptz not null default clock_timestamp(),
  -- Rises with every write of this row: memory keeps the newest that it has seen.
  revision bigint not null default 1,
  constraint area_external_id unique (account_id, external_id)
);
-- Vertices hardly compress, and are read without decompression.
alter table area alter column points set storage external;
create index area_world on area (world_id, id);

-- The number of areas that each account has made, kept by triggers like device_usage.
create table area_usage (
  account_id bigint primary key references account,
  areas bigint not null default 0,
  -- Vertices of polygons and polylines; circles and points have none.
  vertices bigint not null default 0,
  -- Vertices of the past shapes in area_revision. Housekeeping deletes the oldest shapes beyond the plan's limit.
  past_vertices bigint not null default 0
) with (fillfactor = 50);

create function count_areas() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into area_usage as u (account_id, areas, vertices)
    select account_id, count(*), sum(octet_length(points) / 16) from after group by account_id order by account_id
    on conflict (account_id) do update set areas = u.areas + excluded.areas, vertices = u.vertices + excluded.vertices;
  elsif tg_op = 'DELETE' then
    insert into area_usage as u (account_id, areas, vertices)
    select account_id, -count(*), -sum(octet_length(points) / 16) from before group by account_id order by account_id
    on conflict (account_id) do update set areas = u.areas + excluded.areas, vertices = u.vertices + excluded.vertices;
  else
    insert into area_usage as u (account_id, areas, vertices)
    select account_id, sum(areas), sum(vertices) from (
      select account_id, 1 as areas, octet_length(points) / 16 as vertices from after
      union all
      select account_id, -1, -(octet_length(points) / 16) from before
    ) as change
    group by account_id having sum(areas) <> 0 or sum(vertices) <> 0 order by account_id
    on conflict (account_id) do update set areas = u.areas + excluded.areas, vertices = u.vertices + excluded.vertices;
  end if;
  return null;
end
$$;
create trigger area_inserted after insert on area
  referencing new table as after for each statement execute function count_areas();
create trigger area_updated after update on area
  referencing old table as before new table as after for each statement execute function count_areas();
create trigger area_deleted after delete on area
  referencing old table as before for each statement execute function count_areas();

-- The shape, dwell and world that an area had for a time, kept by triggers. Explanations need it to answer why an area did
-- not fire. At most 32 for each area; they are deleted with the area, because nobody can ask about an area that is gone.
create table area_revision (
  area_id bigint not null references area on delete cascade,
  revision bigint not null,
  -- In whole ms, so it compares with position.received_at.
  valid_from timestamptz not null,
  -- Null: the present one.
  valid_to timestamptz,
  world_id bigint not null,
  type text not null,
  center_lat double precision,
  center_lng double precision,
  radius_m double precision,
  buffer_m double precision,
  points bytea not null,
  dwell_seconds integer not null,
  primary key (area_id, revision)
);
alter table area_revision alter column points set storage external;
create index area_revision_past on area_revision (valid_to) where valid_to is not null;

create function begin_area_revisions() returns trigger language plpgsql as $$
begin
  insert into area_revision (area_id, revision, valid_from, world_id, type, center_lat, center_lng, radius_m, buffer_m,
    points, dwell_seconds)
  select id, revision, date_trunc('milliseconds', clock_timestamp()), world_id, type, center_lat, center_lng, radius_m,
    buffer_m, points, dwell_seconds
  from after;
  return null;
end
$$;
create trigger area_begun after insert on area
  referencing new table as after for each statement execute function begin_area_revisions();

create function keep_area_revision() returns trigger language plpgsql as $$
declare
  changed_at constant timestamptz := date_trunc('milliseconds', clock_timestamp());
  -- A statement typed by an operator may leave the revision of the row as it was.
  kept bigint := (select max(revision) from area_revision where area_id = new.id);
begin
  update area_revision set valid_to = changed_at where area_id = new.id and valid_to is null;
  insert into area_revision (area_id, revision, valid_from, world_id, type, center_lat, center_lng, radius_m, buffer_m,
    points, dwell_seconds)
  values (new.id, greatest(new.revision, kept + 1), changed_at, new.world_id, new.type, new.center_lat, new.center_lng, new.radius_m,
    new.buffer_m, new.points, new.dwell_seconds);
  if octet_length(old.points) > 0 then
    insert into area_usage as u (account_id, past_vertices) values (new.account_id, octet_length(old.points) / 16)
    on conflict (account_id) do update set past_vertices = u.past_vertices + excluded.past_vertices;
  end if;
  delete from area_revision where area_id = new.id and revision <= (
    select revision from area_revision where area_id = new.id order by revision desc offset 32 limit 1);
  return null;
end
$$;
create trigger area_revised after update on area for each row
  when ((old.world_id, old.type, old.center_lat, old.center_lng, old.radius_m, old.buffer_m, old.points,
      old.dwell_seconds)
    is distinct from (new.world_id, new.type, new.center_lat, new.center_lng, new.radius_m, new.buffer_m, new.points,
      new.dwell_seconds))
  execute function keep_area_revision();

-- Counts past shapes that are deleted while their area stays. Those of a deleted area are counted by the next trigger,
-- because the area is gone before they are.
create function count_past_vertices() returns trigger language plpgsql as $$
begin
  update area_usage u set past_vertices = u.past_vertices - gone.vertices
  from (
    select a.account_id, sum(octet_length(b.points) / 16) as vertices from before b join area a on a.id = b.area_id
    where b.valid_to is not null group by a.account_id
  ) gone
  where u.account_id = gone.account_id and gone.vertices > 0;
  return null;
end
$$;
create trigger area_revision_deleted after delete on area_revision
  referencing old table as before for each statement execute function count_past_vertices();

create function forget_past_vertices() returns trigger language plpgsql as $$
begin
  update area_usage u set past_vertices = u.past_vertices - gone.vertices
  from (
    select sum(octet_length(points) / 16) as vertices from area_revision where area_id = old.id and valid_to is not null
  ) gone
  where u.account_id = old.account_id and gone.vertices > 0;
  return old;
end
$$;
create trigger area_past_deleted before delete on area for each row execute function forget_past_vertices();

-- Answers to creations of areas under an Idempotency-Key, stored in the transaction of the area.
create table idempotent_answer (
  account_id bigint not null references account,
  key text not null,
  -- The key was sent with a body of this hash.
  body_hash bytea not null,
  -- Null only inside the transaction that claims the key.
  area_id bigint,
  area_created_at timestamptz,
  -- Null: too long to be stored. It is made again from the repeated body, so the keys of an account take 50 MB at most.
  answer text,
  created_at timestamptz not null default clock_timestamp(),
  primary key (account_id, key)
);
create index idempotent_answer_age on idempotent_answer (created_at);

-- Points -------------------------------------------------------------------------------------------------------------

-- Stored points of open days, and points that came late to a packed day until they are packed too. A point is identified
-- by its device and its time in ms. Partitions hold one ISO week each and are made when their first point arrives;
-- retention drops whole partitions.
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
  -- The start of the transaction that stored the point, in whole ms, and whether the point was late: older than the newest
  -- one evaluated for its device, so stored only. Null where this is not known, as with rows that an operator imports.
  received_at timestamptz,
  late boolean,
  primary key (device_id, recorded_at)
) partition by range (recorded_at);

-- The late points of the last days by the transaction that stored them, for those who follow all points with a cursor. Others
-- are found without it: a device stores them in the order of their times.
create table late_point (
  device_id bigint not null,
  xid xid8 not null default pg_current_xact_id(),
  recorded_at timestamptz not null,
  stored_at timestamptz not null default now(),
  primary key (device_id, xid, recorded_at)
);
create index late_point_age on late_point using brin (stored_at) with (pages_per_range = 32);

-- Worlds in which somebody follows all points with a cursor: until then points stay rows for some time after they came, because
-- a packed point does not tell the transaction that stored it. In other worlds they are packed as soon as their days are over.
create table followed_world (
  world_id bigint primary key references world on delete cascade,
  until timestamptz not null
);

-- Points of closed days, compressed: a point takes 143 bytes as a row of position, most of them headers and index, and a few
-- bytes here. A row has consecutive points of one device, of a day, or of a week where the device has few. Those of one
-- device never overlap. Partitions are the weeks of position.
create table packed_points (
  device_id bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- The box of the points. It crosses 180° when west is greater than east.
  south double precision not null,
  west double precision not null,
  north double precision not null,
  east double precision not null,
  count integer not null check (count > 0),
  -- CRC-32 of the bytes.
  checksum integer not null,
  -- The format of the bytes.
  codec smallint not null,
  points bytea not null,
  primary key (device_id, first_at)
) partition by range (first_at);
-- They are compressed already.
alter table packed_points alter column points set storage external;
-- Finds the devices that were at a place by an index alone. The rows lie all over the table: for 20 000 vehicles and 30 days
-- it takes 0.1 instead of 1.5 seconds. It costs some 76 bytes for each device and day.
create index packed_points_boxes on packed_points (device_id, first_at) include (last_at, south, west, north, east);

-- One row: which pod packs points now.
create table packing (
  only_row boolean primary key default true check (only_row),
  holder uuid,
  leased_until timestamptz not null default '-infinity',
  -- When to begin again with the first device.
  pass_due_at timestamptz not null default '-infinity'
);
insert into packing default values;

-- Where the devices of a world have driven, as a grid of the map: a density of cells, without devices and times. A week is the
-- number of weeks since Monday, 5 January 1970 (UTC). When points are packed, the cells that their device and day did not
-- have before are noted here, in the same transaction; then they are counted in track_tile, and leave this table.
create table driven_cells (
  id bigint generated always as identity primary key,
  world_id bigint not null references world on delete cascade,
  week integer not null,
  -- How many cells, and in how many tiles of zoom 13.
  cells integer not null,
  tiles integer not null,
  bytes bytea not null
);
-- They are read once, soon.
alter table driven_cells alter column bytes set storage external;
create index driven_cells_world on driven_cells (world_id, id);

-- The counted cells of a week in a tile of the map: of zoom 13, and of each lower one, where a cell has the highest count of
-- the four that it consists of. `tile` interleaves the bits of its column and row.
create table track_tile (
  world_id bigint not null references world on delete cascade,
  zoom smallint not null,
  tile integer not null,
  week integer not null,
  bytes bytea not null,
  primary key (world_id, zoom, tile, week)
);
create index track_tile_week on track_tile (week);

-- For each world and week how many tiles of zoom 13 there are, and when any of them was changed last: a value of a sequence,
-- so that none stands for two states.
create sequence track_revision;
create table track_week (
  world_id bigint not null references world on delete cascade,
  week integer not null,
  tiles integer not null default 0,
  revision bigint not null default nextval('track_revision'),
  primary key (world_id, week)
);

-- Finds the devices that were at a place in the last days, whose points are rows: a box for each device and two hours. It
-- holds every point of the device that is a row of position, was recorded in these hours and in the time of row_boxing. It
-- may be larger, never smaller: one that crosses 180° is as wide as the earth.
create table row_box (
  device_id bigint not null,
  begins_at timestamptz not null,
  south double precision not null,
  west double precision not null,
  north double precision not null,
  east double precision not null,
  primary key (device_id, begins_at)
);

-- One row: the time, by recorded_at, in which every row has a box.
create table row_boxing (
  only_row boolean primary key default true check (only_row),
  since timestamptz,
  until timestamptz,
  -- When to make the next boxes.
  due_at timestamptz not null default '-infinity'
);
insert into row_boxing default values;

-- Housekeeping makes boxes of points older than twelve minutes, under the lock of the device. Points of that age that come
-- later are given to this function in their transaction. It uses the clock instead of the start of the transaction, because
-- the transaction may have waited. A device on its way leaves its box with every other point. So boxes grow to the next
-- fiftieth of a degree, some two kilometres, and most hold their points already: those are only read.
create function box_old_points(
  device_ids bigint[], recorded timestamptz[], latitudes double precision[], longitudes double precision[]
) returns void language plpgsql as $$
declare
  moment constant timestamptz := clock_timestamp();
begin
  insert into row_box as b (device_id, begins_at, south, west, north, east)
  select f.device_id, f.begins_at, floor(f.south * 50 - 1e-6) / 50, floor(f.west * 50 - 1e-6) / 50,
    ceil(f.north * 50 + 1e-6) / 50, ceil(f.east * 50 + 1e-6) / 50
  from (
    select device_id, date_bin('2 hours', at, timestamptz '2000-01-01 00:00:00+00') as begins_at,
      min(latitude) as south, min(longitude) as west, max(latitude) as north, max(longitude) as east
    from unnest(device_ids, recorded, latitudes, longitudes) as p (device_id, at, latitude, longitude)
    where at < moment - interval '10 minutes' and at > moment - interval '4 days'
    group by 1, 2
  ) as f left join row_box k using (device_id, begins_at)
  where k.device_id is null or f.south < k.south or f.west < k.west or f.north > k.north or f.east > k.east
  order by f.device_id, f.begins_at
  on conflict (device_id, begins_at) do update set south = least(b.south, excluded.south),
    west = least(b.west, excluded.west), north = greatest(b.north, excluded.north), east = greatest(b.east, excluded.east);
end
$$;

-- Pods copy most points into a partition, which fires no trigger of the table, and call the function themselves. This does
-- it for all other rows, once for each statement.
create function box_inserted_points() returns trigger language plpgsql as $$
begin
  if exists (select from fresh where recorded_at < clock_timestamp() - interval '10 minutes') then
    perform box_old_points(array_agg(device_id), array_agg(recorded_at), array_agg(latitude), array_agg(longitude))
    from fresh;
  end if;
  return null;
end
$$;
create trigger position_boxed after insert on position referencing new table as fresh
  for each statement execute function box_inserted_points();

-- Events -------------------------------------------------------------------------------------------------------------

-- What happened: events of devices, and entries to and exits from areas. Events outlive their device and their area.
-- Partitions are ranges of ids. Ids rise in the order of production, so an old range has old events, and an event of known
-- id is looked for in one partition.
create table fleet_event (
  id bigint generated always as identity primary key,
  -- Who can read the event.
  world_id bigint not null,
  device_id bigint not null,
  device_imei text not null,
  type text not null,
  message text not null,
  data jsonb not null,
  -- Entries and exits.
  area_id bigint,
  direction text check (direction in ('entry', 'exit')),
  read boolean not null default false,
  -- The time of the point.
  occurred_at timestamptz not null,
  -- When the event was produced, and by which transaction.
  recorded_at timestamptz not null default clock_timestamp(),
  xid xid8 not null default pg_current_xact_id()
) partition by range (id);

-- Every filter of a list has an index that finds its page, and finds no rows as quickly as some: a list is never searched row
-- by row. An index begins with the values of a filter and ends with the order of the list. A list that leaves some of these
-- values open merges one scan for each value (a world, a type, a direction).
create index fleet_event_world on fleet_event (world_id, occurred_at desc, id desc);
create index fleet_event_type on fleet_event (world_id, type, occurred_at desc, id desc);
create index fleet_event_direction on fleet_event (world_id, direction, occurred_at desc, id desc)
  where direction is not null;
-- A device has few events, so its entries and its areas are found by reading on in this index. Another index would cost each
-- event 140 bytes.
create index fleet_event_device_type on fleet_event (device_imei, world_id, type, occurred_at desc, id desc)
  include (direction, area_id);
create index fleet_event_area_direction on fleet_event (area_id, world_id, direction, occurred_at desc, id desc)
  where area_id is not null;
-- The order of readers that follow events, and the one of events that an endpoint has missed.
create index fleet_event_feed on fleet_event (world_id, xid, id);
create index fleet_event_recorded on fleet_event (world_id, recorded_at);

-- The partitions with a range of ids. Pods make the next range ahead of time.
create table event_part (
  first_id bigint primary key,
  end_id bigint not null,
  name text not null unique,
  -- Ids jump to a new partition only when no transaction is left that is older than it.
  made_at timestamptz not null default clock_timestamp(),
  -- When the first id of the range was given; null: not yet.
  began_at timestamptz
);
insert into event_part (first_id, end_id, name, began_at) values (1, 1000000, 'fleet_event_1', clock_timestamp());
-- From minvalue, so that reads of the first range need not look into the default partition.
create table fleet_event_1 partition of fleet_event for values from (minvalue) to (1000000);
-- Takes ids behind all ranges, so an event is never refused: pods may have been away for long, and ids may have been moved
-- ahead.
create table fleet_event_rest partition of fleet_event default;

-- Tells pods which worlds have new events.
create function announce_events() returns trigger language plpgsql as $$
begin
  insert into change (kind, world_id) select distinct 'events', world_id from after;
  return null;
end
$$;
create trigger fleet_event_inserted after insert on fleet_event
  referencing new table as after for each statement execute function announce_events();

-- Webhooks -----------------------------------------------------------------------------------------------------------

-- Endpoints. A pod takes the lease of an endpoint to send to it, so one request is in flight to it at a time.
create table webhook (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  url text not null,
  description text,
  events text[] not null check (cardinality(events) > 0),
  retry_policy text not null check (retry_policy in ('none', 'fixed', 'exponential')),
  max_retries integer not null check (max_retries between 0 and 10),
  active boolean not null,
  signature_version text not null default 'v1',
  -- Encrypted by AES-256-GCM with SECRETS_KEY.
  secret bytea not null,
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  -- Rises with every lease. Results are written under it, so a pod that was stopped for longer than its lease writes none.
  fencing_token bigint not null default 0,
  leased_until timestamptz,
  -- A paused endpoint gets no new deliveries; those that wait go on.
  paused_at timestamptz,
  paused_reason text check (paused_reason in ('endpoint_quota', 'account_quota', 'failing')),
  -- The first and the last failed attempt since the last success, and the number of them.
  failing_since timestamptz,
  failed_at timestamptz,
  failures integer not null default 0
);
create index webhook_account on webhook (account_id, id);
create index webhook_lease on webhook (leased_until) where leased_until is not null;
create index webhook_paused on webhook (id) where paused_at is not null;
create index webhook_failing on webhook (failing_since) where failing_since is not null;

-- Deliveries: one event to one endpoint. Partitions hold one ISO week each; retention drops whole ones.
create table webhook_delivery (
  id text not null,
  webhook_id bigint not null,
  account_id bigint not null,
  event_id text not null,
  event_type text not null,
  -- The bytes that every attempt signs and sends.
  body text not null,
  status text not null default 'pending'
    check (status in ('pending', 'delivered', 'failed', 'exhausted', 'requeued')),
  attempts integer not null default 0,
  -- Attempts since the last replay, which gives a delivery its retries anew.
  spent integer not null default 0,
  -- Null: no attempt is due.
  next_attempt_at timestamptz default clock_timestamp(),
  -- The fencing token of the attempt in flight.
  attempt_token bigint,
  last_status_code integer,
  last_error text,
  last_duration_ms integer,
  created_at timestamptz not null default clock_timestamp(),
  delivered_at timestamptz,
  primary key (id, created_at)
) partition by range (created_at);
create unique index webhook_delivery_once on webhook_delivery (webhook_id, event_id, created_at);
create index webhook_delivery_due on webhook_delivery (webhook_id, next_attempt_at) where next_attempt_at is not null;
create index webhook_delivery_in_flight on webhook_delivery (webhook_id) where attempt_token is not null;
create index webhook_delivery_list on webhook_delivery (webhook_id, created_at desc, id desc);
create index webhook_delivery_status on webhook_delivery (webhook_id, status, created_at desc, id desc);
create index webhook_delivery_dead on webhook_delivery (account_id, created_at desc, id desc) where status = 'exhausted';
create index webhook_delivery_summary on webhook_delivery (account_id, created_at)
  include (status, attempts, last_duration_ms);

-- Deliveries of large transactions wait here to be created. One point inside thousands of areas, times a hundred endpoints, is
-- hundreds of thousands of deliveries, too many for the transaction of a point. It stores the events and who receives them;
-- the deliveries are created afterwards, a chunk in a statement.

-- Events of one transaction in the order of production, each with the body that all its deliveries have.
create table webhook_outbox_batch (
  id bigint generated always as identity primary key,
  event_ids text[] not null,
  event_types text[] not null,
  bodies text[] not null
);

-- What one account receives of a batch. Ids rise in the order in which the events of a device were produced, because each
-- transaction of a device sees the one before. The row is deleted when all its deliveries are created.
create table webhook_outbox (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  batch_id bigint not null references webhook_outbox_batch,
  -- Indexes of the events in the batch, from 1. Each of them goes to each of webhook_ids, event by event.
  places integer[] not null,
  webhook_ids bigint[] not null,
  -- The number of deliveries, and how many of them are created.
  size integer not null,
  done integer not null default 0,
  -- When the events were produced. An endpoint that was paused before does not get them from here.
  created_at timestamptz not null default clock_timestamp()
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index webhook_outbox_account on webhook_outbox (account_id, id);
create index webhook_outbox_of_batch on webhook_outbox (batch_id);

-- The events that a paused endpoint has missed: those produced after (from_at, after_id) and until to_at. Once it is resumed
-- their deliveries are created in that order, and the row says how far this has come. An event that has a delivery already
-- is skipped, so a range may begin early.
create table webhook_left_out (
  webhook_id bigint primary key references webhook on delete cascade,
  from_at timestamptz not null,
  after_id bigint not null default 0,
  -- Null while the endpoint is paused.
  to_at timestamptz
) with (fillfactor = 50);

-- Deleted endpoints that still have deliveries. After months these are millions, and no statement may take that long. The
-- endpoint is gone at once, its deliveries are deleted in chunks, and this row goes with the last one.
create table webhook_removed (
  webhook_id bigint primary key,
  account_id bigint not null,
  removed_at timestamptz not null default clock_timestamp()
);

-- The database server -------------------------------------------------------------------------------------------------

-- One row: names this database, so that several deployments can share one Redis without mixing their keys.
create table instance (
  id uuid primary key default gen_random_uuid(),
  only_row boolean not null default true unique check (only_row)
);
insert into instance default values;

-- Starts of the server that the service has met. A database whose files were restored, and a replica that was promoted before
-- it had everything, go on under the same names: they give log positions, transaction ids and ids of rows again. So every
-- start is recorded before anything is written under it, and cursors name theirs.
create table server_start (
  ordinal bigint primary key,
  -- Random, so that starts which a database has forgotten are told apart from those that it has had since.
  mark bigint not null unique,
  noted_at timestamptz not null default clock_timestamp(),
  -- The cluster, and the transaction that wrote the row of the instance: a restored dump has others.
  system text not null,
  timeline bigint not null,
  started_at timestamptz not null,
  -- Of earlier starts this one has the log up to here, and transactions below this one.
  wal_bytes bigint not null,
  next_xid bigint not null,
  -- Ids of webhook events are made from it, so a row id that is given again makes another event id.
  event_scope text not null,
  -- Whether the server may lack what was acknowledged under an earlier start: then ids were moved ahead.
  renewed boolean not null,
  -- How often that has happened.
  renewals integer not null,
  -- The mark of the last start that lacked something a pod had seen; 0: none.
  lacking bigint not null
);

-- One row: the start that was recorded last. It is not logged, so it is empty after a crash, on a promoted replica and in a
-- copy of a running server. A shutdown leaves it as it was.
create unlogged table server_session (
  only_row boolean primary key default true check (only_row),
  ordinal bigint not null,
  system text not null,
  timeline bigint not null,
  started_at timestamptz not null
);

-- The timeline of this server; null on a replica. A promotion begins a new one at once, while pg_control_checkpoint shows it
-- only after the next checkpoint.
create function server_timeline() returns bigint language sql as $$
  select case when pg_is_in_recovery() then null
    else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint end
$$;

-- Names the history of this server; null on a replica. Under the same name a transaction keeps its id. It has the system
-- identifier, the timeline and the database, and the last start where a pod had seen more. The row of the instance is
-- written once, so its xmin tells a restored database from the one that was dumped.
create function server_history() returns text language sql as $$
  select system_identifier || '/' || server_timeline() || '/'
    || (select oid from pg_database where datname = current_database()) || '.' || (select xmin from instance)
    || coalesce((select '/' || nullif(lacking, 0) from server_start order by ordinal desc limit 1), '')
  from pg_control_system()
$$;

-- Names the present start. enter_server() has recorded it for every connection of the service.
create function server_mark() returns bigint language sql as $$
  select mark from server_start order by ordinal desc limit 1
$$;

-- The log up to here is on disk, and with it all that a reader can have seen. Null on a replica.
create function flushed_bytes() returns bigint language sql as $$
  select case when pg_is_in_recovery() then null
    else pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint end
$$;

-- Moves every sequence ahead, by more than can have been lost and by a random amount, so that a database which is restored
-- twice gives different ids each time. Ids stay below 2^53: there is room for a million times.
create function move_ids_ahead() returns void language plpgsql as $$
declare
  s record;
  step bigint;
begin
  for s in
    select c.oid, c.relname from pg_class c
    where c.relkind = 'S' and c.relnamespace = (select relnamespace from pg_class where oid = 'server_start'::regclass)
  loop
    step := case when s.relname like 'fleet\_event%' then 1::bigint << 32 else 1::bigint << 20 end;
    perform setval(s.oid::regclass, coalesce(pg_sequence_last_value(s.oid::regclass), 0) + step + floor(random() * step)::bigint);
  end loop;
end
$$;

-- Whether a start lacks something that was seen under another one.
create function lacks_seen(start_ordinal bigint, seen_mark bigint, seen_bytes bigint, seen_xmax bigint)
returns boolean language sql as $$
  select case
    when seen_mark is null then false
    else not exists (select from server_start s where s.mark = seen_mark and s.ordinal <= start_ordinal)
      or exists (
        select from server_start later
        where later.ordinal <= start_ordinal
          and later.ordinal > (select s.ordinal from server_start s where s.mark = seen_mark)
          and (later.wal_bytes < seen_bytes or later.next_xid < seen_xmax))
    end
$$;

-- Uses up as many transaction ids, and writes each to the log. Returns the last of them.
create function use_up_transactions(wanted integer) returns bigint language plpgsql as $$
begin
  for n in 1..wanted loop
    begin
      -- Each block with an exception is a subtransaction; the message gives it an id.
      perform pg_logical_emit_message(true, 'fleet', '');
    exception when query_canceled then raise;
    end;
  end loop;
  -- Ids of subtransactions follow the one of their transaction.
  return pg_current_xact_id()::text::bigint + wanted;
end
$$;

-- The first statement of every connection of the service. It is given what the pod has seen: a start, how much of the log was
-- on disk, and the end of a snapshot; nulls from a process that has seen nothing. Returns what ids of webhook events are
-- made from; null on a replica, where nothing may be done.
--
-- One process handles a start, the others wait for it. Ids are renewed when the server may lack what was acknowledged:
-- a pod has seen more, the timeline or the cluster is another one, or the server has recovered and there is no pod that
-- knows how far it had come. When a pod has seen more, transaction ids mean something else as well (server_history).
--
-- A server that has recovered lacks nothing that was on disk, but its log ends before two things that a pod may have seen:
-- a part of a record (the end of a page up to which the log was flushed), and ids of transactions that were rolled back. The
-- first cannot be told from a loss where the whole server was started again; where its processes were, everything on disk is
-- there. The ids are used up, so that they are not given to others.
create function enter_server(seen_mark bigint, seen_bytes bigint, seen_xmax bigint) returns text
language plpgsql as $$
declare
  here server_start;
  before server_start;
  system_now text := (select system_identifier || '.' || (select xmin from instance) from pg_control_system());
  timeline_now bigint;
  reached bigint;
  is_lacking boolean;
  -- The server's processes were ended, and its first one started others.
  is_same_run boolean;
  -- More than are rolled back between two writes of the log.
  unlogged_max constant integer := 1000;
begin
  if pg_is_in_recovery() then return null; end if;
  timeline_now := server_timeline();
  for attempt in 1..2 loop
    select s.* into here from server_session p join server_start s using (ordinal)
    where p.started_at = pg_postmaster_start_time() and p.timeline = timeline_now and p.system = system_now;
    if here.ordinal is not null then
      is_lacking := seen_mark is distinct from here.mark and here.lacking <> here.mark
        and lacks_seen(here.ordinal, seen_mark, seen_bytes, seen_xmax);
      if not is_lacking then return here.event_scope; end if;
    end if;
    -- A replica that hangs must not keep anybody out; it records a start of its own when it is promoted.
    if attempt = 1 then
      perform set_config('synchronous_commit', 'local', true);
      perform pg_advisory_xact_lock(7215081947);
    end if;
  end loop;

  select * into before from server_start order by ordinal desc limit 1;
  if here.ordinal is null then
    -- Where recovery ended, or where the shutdown was. Before the first start nothing is known.
    reached := pg_wal_lsn_diff(case when before.ordinal is null then pg_current_wal_insert_lsn()
      else coalesce(pg_last_wal_replay_lsn(), (select checkpoint_lsn from pg_control_checkpoint())) end, '0/0')::bigint;
    here.ordinal := coalesce(before.ordinal, 0) + 1;
    here.mark := 1 + floor(random() * (1::bigint << 48))::bigint;
    is_same_run := before.system = system_now and before.timeline = timeline_now
      and before.started_at = pg_postmaster_start_time();
    here.wal_bytes := case when is_same_run then pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint else reached end;
    here.next_xid := case when pg_last_wal_replay_lsn() is null then pg_snapshot_xmax(pg_current_snapshot())::text::bigint
      else use_up_transactions(unlogged_max) + 1 end;
    here.event_scope := coalesce(before.event_scope, (select id::text from instance));
    here.renewals := coalesce(before.renewals, 0);
    here.lacking := coalesce(before.lacking, 0);
    here.renewed := false;
    insert into server_start (ordinal, mark, system, timeline, started_at, wal_bytes, next_xid, event_scope, renewed, renewals, lacking)
    values (here.ordinal, here.mark, system_now, timeline_now, pg_postmaster_start_time(), here.wal_bytes, here.next_xid,
      here.event_scope, false, here.renewals, here.lacking);
    insert into server_session (ordinal, system, timeline, started_at)
    values (here.ordinal, system_now, timeline_now, pg_postmaster_start_time())
    on conflict (only_row) do update
      set ordinal = excluded.ordinal, system = excluded.system, timeline = excluded.timeline, started_at = excluded.started_at;
    -- A cursor of a start that has been deleted has expired.
    delete from server_start where ordinal <= here.ordinal - 1000;
    is_lacking := lacks_seen(here.ordinal, seen_mark, seen_bytes, seen_xmax);
    here.renewed := is_lacking or before.ordinal is not null and (
      before.system <> system_now or before.timeline <> timeline_now or reached < before.wal_bytes
      or seen_mark is null and before.started_at <> pg_postmaster_start_time() and pg_last_wal_replay_lsn() is not null);
    if not here.renewed then return here.event_scope; end if;
    here.renewed := false;
  end if;

  if is_lacking then here.lacking := here.mark; end if;
  if not here.renewed then
    perform move_ids_ahead();
    here.event_scope := gen_random_uuid()::text;
    here.renewals := here.renewals + 1;
  end if;
  update server_start set renewed = true, renewals = here.renewals, lacking = here.lacking, event_scope = here.event_scope
  where ordinal = here.ordinal;
  return here.event_scope;
end
$$;

-- Pods ---------------------------------------------------------------------------------------------------------------

-- The change log, which pods follow to keep their memory in step. A reader's cursor is a snapshot: it takes the rows that are
-- committed in the present one and were not in its own. So a transaction that commits late is never skipped, and holds
-- nobody up.
create table change (
  xid xid8 not null default pg_current_xact_id(),
  id bigint generated always as identity,
  -- 'positions': new positions of devices, in payload and stays. 'events': a world has new events. 'device', 'account',
  -- 'key', 'share', 'area', 'webhook': the row of entity_id has changed and is read again.
  kind text not null,
  world_id bigint,
  world_version bigint,
  entity_id bigint,
  payload bytea,
  -- The stays that changed with the positions, as JSON.
  stays text,
  at timestamptz not null default clock_timestamp(),
  primary key (xid, id)
);
-- Positions are read once or twice and deleted after minutes: compressing them costs more than it saves.
alter table change alter column payload set storage external;
-- Is there anything but positions that a pod has not applied?
create index change_writes on change (xid) where kind <> 'positions';
-- The same for what points are evaluated against, without reading all changes of one import.
create index change_unapplied on change (xid, world_id, kind) where kind in ('account', 'area', 'webhook');

-- The kinds and worlds of changes that are not in the snapshot `applied`, of what points are evaluated against: at most
-- max_rows, and a world may come several times. Each transaction of points asks this. An import of 10 000 areas makes 10 000
-- changes of one world, so each step jumps to the next entry of the index above. Without the settings Postgres may read
-- all changes by another index and sort them, because new changes are not in its statistics yet. It is in plpgsql because
-- that keeps the plan.
create function unapplied_changes(applied pg_snapshot, max_rows integer)
returns table (kind text, world_id bigint)
language plpgsql stable set enable_sort = off set enable_incremental_sort = off as $$
begin
  return query
  with recursive step (xid, world_id, kind, n) as (
    (select c.xid, c.world_id, c.kind, 1 from change c
      where c.xid >= pg_snapshot_xmin(applied) and c.kind in ('account', 'area', 'webhook')
        and not pg_visible_in_snapshot(c.xid, applied)
      order by c.xid, c.world_id, c.kind limit 1)
    union all
    select next.xid, next.world_id, next.kind, step.n + 1 from step cross join lateral (
      select c.xid, c.world_id, c.kind from change c
      where (c.xid, c.world_id, c.kind) > (step.xid, step.world_id, step.kind)
        and c.kind in ('account', 'area', 'webhook') and not pg_visible_in_snapshot(c.xid, applied)
      order by c.xid, c.world_id, c.kind limit 1) next
    where step.n < max_rows
  )
  select step.kind, step.world_id from step;
end
$$;

-- One row.
create table change_horizon (
  only_row boolean primary key default true check (only_row),
  -- Every change up to this transaction may have been pruned: a reader whose snapshot does not have it loads anew.
  xid xid8 not null,
  first_timeline bigint not null default coalesce(server_timeline(), 1)
);
insert into change_horizon (xid) values (pg_current_xact_id());

-- Added to versions of worlds where pods compare them. Versions are given again after a promotion and after ids were renewed;
-- with this they are higher than all before.
create function version_base() returns bigint language sql as $$
  select (greatest(0, server_timeline() - first_timeline)
    + coalesce((select renewals from server_start order by ordinal desc limit 1), 0)) << 32
  from change_horizon
$$;

-- Running pods, and how far each has followed the change log: everything that is committed in that snapshot is applied.
create table pod (
  id uuid primary key,
  feed_cursor pg_snapshot not null,
  started_at timestamptz not null default clock_timestamp(),
  seen_at timestamptz not null default clock_timestamp()
);

-- Pods write here to find out whether the database takes writes. Such a write waits for what a point waits for (the disk, a
-- synchronous replica). Each pod has a row of its own: while one try waits for a replica, the next one of the same pod waits
-- for it instead of holding another session.
create table write_probe (
  pod_id uuid primary key,
  at timestamptz not null default clock_timestamp()
);

select enter_server(null, null, null);
