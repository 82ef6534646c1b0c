-- Why did an area not fire? To answer that, what a point was evaluated against must be known later as well: when the
-- point came, whether it came too late to be evaluated, and what the area and the worlds were like at that time.

-- Null: stored before this migration, or by a pod of the version before. Without a default, so no row is rewritten.
-- received_at is the beginning of the transaction that stored the point, by the clock of Postgres, in whole ms.
alter table position add column received_at timestamptz, add column late boolean;

-- What an area was like: the shape, the dwell and the world of each revision that changed one of them. Times are those of
-- Postgres' clock, in whole ms, so they compare with received_at. valid_to is null on the present one. At most 32 for
-- each area, and they go with it: nobody can ask about an area that is gone.
create table area_revision (
  area_id bigint not null references area on delete cascade,
  revision bigint not null,
  valid_from timestamptz not null,
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

-- Triggers, because pods of the version before write areas, devices and accounts as well.
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

-- Where a device was before, and what an account belonged to (the world of its organization, null for none): until when.
-- The present ones are in device and account.
create table device_move (
  id bigint generated always as identity primary key,
  device_id bigint not null,
  world_id bigint not null,
  until timestamptz not null
);
create index device_move_device on device_move (device_id, until);
create index device_move_until on device_move (until);
create table membership_end (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  organization_world_id bigint,
  until timestamptz not null
);
create index membership_end_account on membership_end (account_id, until);
create index membership_end_until on membership_end (until);

create function keep_device_move() returns trigger language plpgsql as $$
begin
  insert into device_move (device_id, world_id, until)
  values (old.id, old.world_id, date_trunc('milliseconds', clock_timestamp()));
  return null;
end
$$;
create trigger device_moved after update on device for each row
  when (old.world_id <> new.world_id) execute function keep_device_move();

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

-- What there is now, after the triggers, so that nothing is missed. An area that was never written again has been like
-- this since it was made; what others were like before is not known, and nothing here says that it is.
insert into area_revision (area_id, revision, valid_from, world_id, type, center_lat, center_lng, radius_m, buffer_m,
  points, dwell_seconds)
select id, revision, date_trunc('milliseconds', case when revision = 1 then created_at else clock_timestamp() end),
  world_id, type, center_lat, center_lng, radius_m, buffer_m, points, dwell_seconds
from area;
