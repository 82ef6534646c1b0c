-- The events that there are become the first partition of fleet_event. No row is read or written: the constraint of the
-- steps before says all that Postgres has to know. Pods of the version before find the same table under the same name.

alter table fleet_event rename to fleet_event_first;
alter index fleet_event_pkey rename to fleet_event_first_pkey;
alter index fleet_event_world rename to fleet_event_first_world;
alter index fleet_event_type rename to fleet_event_first_type;
alter index fleet_event_direction rename to fleet_event_first_direction;
alter index fleet_event_device_type rename to fleet_event_first_device_type;
alter index fleet_event_area_direction rename to fleet_event_first_area_direction;
alter index fleet_event_feed rename to fleet_event_first_feed;
alter index fleet_event_recorded rename to fleet_event_first_recorded;
drop trigger fleet_event_inserted on fleet_event_first;
-- Worlds are never deleted. A partition would bring the constraint along, and lock the worlds to make it.
alter table fleet_event_first drop constraint fleet_event_world_id_fkey;

create table fleet_event (like fleet_event_first including defaults including constraints) partition by range (id);
alter table fleet_event drop constraint first_ids;
alter table fleet_event add constraint fleet_event_pkey primary key (id);
create index fleet_event_world on fleet_event (world_id, occurred_at desc, id desc);
create index fleet_event_type on fleet_event (world_id, type, occurred_at desc, id desc);
create index fleet_event_direction on fleet_event (world_id, direction, occurred_at desc, id desc)
  where direction is not null;
create index fleet_event_device_type on fleet_event (device_imei, world_id, type, occurred_at desc, id desc)
  include (direction, area_id);
create index fleet_event_area_direction on fleet_event (area_id, world_id, direction, occurred_at desc, id desc)
  where area_id is not null;
create index fleet_event_feed on fleet_event (world_id, xid, id);
create index fleet_event_recorded on fleet_event (world_id, recorded_at) where recorded_at is not null;

-- The sequence goes with the column of the old table, so the new one goes on behind it.
do $$
declare
  next_id constant bigint := (select last_value + is_called::integer from fleet_event_id_seq);
begin
  alter table fleet_event_first alter column id drop identity;
  execute format('alter table fleet_event alter column id add generated always as identity (start with %s)', next_id);
  execute format('alter table fleet_event attach partition fleet_event_first for values from (minvalue) to (%s)',
    (select end_id from event_part));
end
$$;
alter table fleet_event_first drop constraint first_ids;

-- Takes what lies behind all ranges, so that an event is never refused: a pod makes ranges ahead of the ids, but it may be
-- away for long, and the numbers may be set ahead.
create table fleet_event_rest partition of fleet_event default;

create trigger fleet_event_inserted after insert on fleet_event
  referencing new table as after for each statement execute function announce_events();
