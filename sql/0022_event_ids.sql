-- Events are kept for a time instead of for ever, so they are partitioned: to drop a table costs nothing, to delete its
-- rows costs as much as they did. The partitions are ranges of ids. Ids rise in the order of production, so an old range
-- holds old events, and what is known by its id is looked for in one partition. (By time, each look-up by id would go
-- through all of them, and the old rows have no time of production.)
--
-- The present table becomes the first partition. Postgres must be sure that its ids are below the end of it; to look at
-- every row while nobody may write would stop points for as long. So it is done in three steps: this one forbids higher
-- ids for new rows, the next looks at the old ones while everything goes on, and then no row has to be looked at any more.

-- The ranges. made_at: since when the partition is there; ids jump to it only when no transaction is left that does not know
-- it. began_at: when its first id was given; null as long as none was.
create table event_part (
  first_id bigint primary key,
  end_id bigint not null,
  name text not null unique,
  made_at timestamptz not null default clock_timestamp(),
  began_at timestamptz
);

-- There is room for a million events and for as many as there are now: more than are produced until the last step.
insert into event_part (first_id, end_id, name, began_at)
select s.last_value + s.is_called::integer, (s.last_value * 2 / 1000000 + 1) * 1000000, 'fleet_event_first', clock_timestamp()
from fleet_event_id_seq s;

do $$
begin
  execute format('alter table fleet_event add constraint first_ids check (id < %s) not valid',
    (select end_id from event_part));
end
$$;
