-- Quotas: without them one account could fill the memory of every pod, which holds all areas and all devices.

-- What an account of a plan may have: areas that it made (shared ones too) and their vertices, devices in a world
-- that it imports into, and Idempotency-Keys that are kept at a time.
alter table plan
  add column max_areas integer not null default 20000 check (max_areas >= 0),
  add column max_area_vertices bigint not null default 4000000 check (max_area_vertices >= 0),
  add column max_devices bigint not null default 5000000 check (max_devices >= 0),
  add column max_idempotency_keys integer not null default 10000 check (max_idempotency_keys >= 0);

-- What there is, counted by triggers: pods of the version before this one write areas and devices beside new ones, and
-- know nothing of it. A writer that is held to a quota locks its row before it looks, so two can never pass together.
-- No check against negative counts: a change is laid over the row as an insert, and would be refused as one.
create table area_usage (
  account_id bigint primary key references account,
  areas bigint not null default 0,
  -- Of polygons and tracks; circles and places have none.
  vertices bigint not null default 0
) with (fillfactor = 50);

create table device_usage (
  world_id bigint primary key references world,
  devices bigint not null default 0
) with (fillfactor = 50);

-- One function for inserts, updates and deletes: of the branches only the one that fits is ever planned, since a table
-- of the others is not there. Accounts in ascending order, so two statements never wait for each other in a circle.
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

-- The triggers come first: to make one waits for every writer and lets none in until this migration ends, so nothing
-- is written between the counting and the first that is counted by itself.
create trigger area_inserted after insert on area
  referencing new table as after for each statement execute function count_areas();
create trigger area_updated after update on area
  referencing old table as before new table as after for each statement execute function count_areas();
create trigger area_deleted after delete on area
  referencing old table as before for each statement execute function count_areas();
create trigger device_inserted after insert on device
  referencing new table as after for each statement execute function count_devices();
create trigger device_updated after update on device
  referencing old table as before new table as after for each statement execute function count_devices();
create trigger device_deleted after delete on device
  referencing old table as before for each statement execute function count_devices();

insert into area_usage (account_id, areas, vertices)
select account_id, count(*), sum(octet_length(points) / 16) from area group by account_id;
insert into device_usage (world_id, devices) select world_id, count(*) from device group by world_id;
