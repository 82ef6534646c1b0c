-- Past shapes of areas count by their bytes. At most 32 for each area were kept: of 20 000 areas of 2 000 vertices each
-- that is 20 GB for one account. An account has as many vertices of past shapes now as its plan gives it for present ones;
-- housekeeping deletes the oldest beyond that.

-- Counted in the row that writers of areas lock anyway.
alter table area_usage add column past_vertices bigint not null default 0;

create or replace function keep_area_revision() returns trigger language plpgsql as $$
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

-- Past shapes that are deleted by themselves. Those of an area that is deleted are counted by the next trigger: their area
-- is not there any more when they go.
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

-- What there is, after the triggers, which let no writer in until this migration ends.
update area_usage u set past_vertices = past.vertices
from (
  select a.account_id, sum(octet_length(r.points) / 16) as vertices
  from area_revision r join area a on a.id = r.area_id where r.valid_to is not null group by a.account_id
) past
where u.account_id = past.account_id and past.vertices > 0;

-- The answer to a creation says what was sent, in the form of the service, and a few things more. A long one is made again
-- from the repeated body, so the keys of an account take 50 MB at most instead of a gigabyte. `answer` is null then.
alter table idempotent_answer add column area_created_at timestamptz;

create index api_key_revoked on api_key (revoked_at) where revoked_at is not null;
