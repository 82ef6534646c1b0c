-- Feeds: what has changed since a snapshot, for readers who come back with a cursor.
--
-- A device's last change is the transaction that wrote its row last: xmin of device and of device_state, which Postgres
-- keeps anyway. Events keep theirs in a column, because they are read in its order.

-- Rises with every message that changed the state, so that two messages about one position have an order.
alter table device_state add column revision bigint not null default 0;

-- Of 'positions': what the payload lacks (heading, ignition, revision). Null where a pod of the version before wrote it.
alter table change add column details bytea;

-- Old events sort first. They have no time of production: the time at which they occurred is taken for it.
alter table fleet_event add column xid xid8 not null default '1', add column recorded_at timestamptz;
alter table fleet_event
  alter column xid set default pg_current_xact_id(), alter column recorded_at set default clock_timestamp();
create index fleet_event_feed on fleet_event (world_id, xid, id);
create index fleet_event_recorded on fleet_event (world_id, recorded_at) where recorded_at is not null;

-- Pods are told of the worlds that have new events by the change feed. A trigger, since pods of the version before write
-- events too.
create function announce_events() returns trigger language plpgsql as $$
begin
  insert into change (kind, world_id) select distinct 'events', world_id from after;
  return null;
end
$$;
create trigger fleet_event_inserted after insert on fleet_event
  referencing new table as after for each statement execute function announce_events();

-- Devices that left a world, for its readers. xmin is the transaction by which they left.
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

-- How far a server had followed the one before it when it was promoted, as a pod saw it that knew both: what a cursor of
-- the earlier timeline has seen up to there is here as well.
create table server_promotion (
  timeline bigint primary key,
  replayed_bytes bigint not null,
  at timestamptz not null default clock_timestamp()
);

create function wal_bytes() returns bigint language sql as $$
  select case when pg_is_in_recovery() then null
    else pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint end
$$;

-- As before, and with the database: one that was restored, or is a copy, has others. The row of the instance is written
-- once, so its xmin tells a restored database from the one that was dumped.
create or replace function server_history() returns text language sql as $$
  select system_identifier || '/' || server_timeline() || '/'
    || (select oid from pg_database where datname = current_database()) || '.' || (select xmin from instance)
  from pg_control_system()
$$;
