-- Which devices were at a place today: the points of the last days are rows, a hundred million in a fleet of 20 000, and
-- too many to be looked at. So there is a box for each device and two hours.

-- The box holds every point of the device that is a row, was recorded in these two hours, and lies in the time of
-- row_boxing. It may be larger, never smaller: one that crosses 180° is as wide as the earth.
create table row_box (
  device_id bigint not null,
  begins_at timestamptz not null,
  south double precision not null,
  west double precision not null,
  north double precision not null,
  east double precision not null,
  primary key (device_id, begins_at)
);

-- One row: from when to when every row has a box, by recorded_at, and when to make the next boxes.
create table row_boxing (
  only_row boolean primary key default true check (only_row),
  since timestamptz,
  until timestamptz,
  due_at timestamptz not null default '-infinity'
);
insert into row_boxing default values;

-- Boxes are made of what is older than twelve minutes, under the lock of the device. What comes later and is as old is
-- added here: a trigger, because pods of the version before write points as well. For each statement, not for each row:
-- thousands of old points widen a box once. The clock, not the beginning of the transaction: it may have waited.
create function box_old_rows() returns trigger language plpgsql as $$
declare
  moment constant timestamptz := clock_timestamp();
begin
  insert into row_box as b (device_id, begins_at, south, west, north, east)
  select device_id, date_bin('2 hours', recorded_at, timestamptz '2000-01-01 00:00:00+00'),
    min(latitude), min(longitude), max(latitude), max(longitude)
  from fresh where recorded_at < moment - interval '10 minutes' and recorded_at > moment - interval '4 days'
  group by 1, 2 order by 1, 2
  on conflict (device_id, begins_at) do update set south = least(b.south, excluded.south),
    west = least(b.west, excluded.west), north = greatest(b.north, excluded.north), east = greatest(b.east, excluded.east)
  where excluded.south < b.south or excluded.west < b.west or excluded.north > b.north or excluded.east > b.east;
  return null;
end
$$;
create trigger position_boxed after insert on position referencing new table as fresh
  for each statement execute function box_old_rows();
