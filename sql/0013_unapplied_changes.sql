-- Each transaction of points asks which worlds have changes that its pod has not applied. An import of 10 000 areas
-- brings 10 000 changes of one world, and each such question read all of them. Now it jumps through an index from one
-- world of a transaction to the next.

create index change_unapplied on change (xid, world_id, kind) where kind in ('account', 'area', 'webhook');

-- The kinds and worlds of changes that are not in the snapshot `applied`, of what points are evaluated against: at most
-- max_rows, and a world may come several times. Each step finds the next entry of the index above. Without the settings
-- Postgres may read all changes by another index and sort them, because new changes are not in its statistics yet. It
-- is in plpgsql because that keeps the plan.
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

-- Pods of the version before this migration use the new index as well.
drop index change_judged;
