-- A stored point takes 143 bytes as a row, most of them headers and index. Points of closed days become one row for each
-- device and day, of a few bytes a point.

-- Points of one device that follow each other: of one day, or of a week where its days have few. Those of one device never
-- overlap. Late points to a packed day are rows of position until they are packed in. Partitions hold one ISO week each,
-- as those of position, and retention drops them with these. South to east: the box of the points; when west is greater
-- than east, it crosses 180°. checksum: CRC-32 of the bytes.
create table packed_points (
  device_id bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  south double precision not null,
  west double precision not null,
  north double precision not null,
  east double precision not null,
  count integer not null check (count > 0),
  checksum integer not null,
  codec smallint not null,
  points bytea not null,
  primary key (device_id, first_at)
) partition by range (first_at);
-- It is compressed already.
alter table packed_points alter column points set storage external;

-- One row: which pod packs, until when, how far it has come, and when to begin again with the first device.
create table packing (
  only_row boolean primary key default true check (only_row),
  holder uuid,
  leased_until timestamptz not null default '-infinity',
  after_device_id bigint not null default 0,
  pass_due_at timestamptz not null default '-infinity'
);
insert into packing default values;

-- A command of the version before deletes a device without knowing of packed points.
create function delete_packed_points() returns trigger language plpgsql as $$
begin
  delete from packed_points where device_id = old.id;
  return null;
end
$$;
create trigger device_unpacked after delete on device for each row execute function delete_packed_points();
