-- Points wait only for changes that they are judged by, and a failover to a replica that lacks the newest transactions
-- is noticed: the replica gives their numbers again, and versions of worlds as well.

create index change_judged on change (xid) include (world_id) where kind in ('account', 'area', 'webhook');

-- The timeline of this server: a promotion begins a new one at once (pg_control_checkpoint tells it only after the next
-- checkpoint). Null on a replica.
create function server_timeline() returns bigint language sql as $$
  select case when pg_is_in_recovery() then null
    else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint end
$$;

-- Names the past of this server: under the same name a transaction keeps its number. Null on a replica.
create function server_history() returns text language sql as $$
  select system_identifier || '/' || server_timeline() from pg_control_system()
$$;

alter table change_horizon add column first_timeline bigint not null default coalesce(server_timeline(), 1);

-- Added to versions of worlds where pods compare them: what a later timeline says is newer than all of an earlier one.
-- Pods of the version before this migration add nothing, which is the same until the first promotion.
create function version_base() returns bigint language sql as $$
  select greatest(0, server_timeline() - first_timeline) << 32 from change_horizon
$$;
