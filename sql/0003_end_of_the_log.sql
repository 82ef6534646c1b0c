-- The position up to which a start of the server has the log of those before: where the shutdown was, or where recovery ended.
--
-- A server that is killed often leaves the beginning of a record at the end of its log: whole pages are written to disk when they
-- are full, and pods may have seen that the log was on disk up to the end of such a page. Recovery applies whole records only
-- (pg_last_wal_replay_lsn). It then leaves the pages that have a part of a record as they are, and goes on at the beginning of
-- the next one (since PostgreSQL 14), with a record that says so and its checkpoint. That page is the first that was not on disk.
-- No whole record ends between the two positions, so nothing that anybody can have seen is lost by this.
--
-- The last checkpoint is that of the recovery only until the next one. It is told by its redo position, which is its own where
-- nothing is written meanwhile; a later one writes the running transactions, unless the log is minimal. After that the smaller
-- position counts: something may be taken for lost then that is not.
create function start_bytes() returns bigint language sql as $$
  select case
    when replayed is null then checkpoint
    when redo = checkpoint and current_setting('wal_level') <> 'minimal' then greatest(replayed, checkpoint - checkpoint % page_bytes)
    else replayed
  end
  from (
    select pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint as replayed,
      pg_wal_lsn_diff(checkpoint_lsn, '0/0')::bigint as checkpoint,
      pg_wal_lsn_diff(redo_lsn, '0/0')::bigint as redo,
      current_setting('wal_block_size')::bigint as page_bytes
    from pg_control_checkpoint()
  ) as log
$$;

-- As before, but for start_bytes(): a start after a crash has all of the log that was on disk, also a part of a record.
create or replace function enter_server(seen_mark bigint, seen_bytes bigint, seen_xmax bigint) returns text
language plpgsql as $$
declare
  here server_start;
  before server_start;
  system_now text := (select system_identifier || '.' || (select xmin from instance) from pg_control_system());
  timeline_now bigint;
  reached bigint;
  is_lacking boolean;
  -- The server's processes were ended, and its first one started others.
  is_same_run boolean;
  -- More than are rolled back between two writes of the log.
  unlogged_max constant integer := 1000;
begin
  if pg_is_in_recovery() then return null; end if;
  timeline_now := server_timeline();
  for attempt in 1..2 loop
    select s.* into here from server_session p join server_start s using (ordinal)
    where p.started_at = pg_postmaster_start_time() and p.timeline = timeline_now and p.system = system_now;
    if here.ordinal is not null then
      is_lacking := seen_mark is distinct from here.mark and here.lacking <> here.mark
        and lacks_seen(here.ordinal, seen_mark, seen_bytes, seen_xmax);
      if not is_lacking then return here.event_scope; end if;
    end if;
    -- A replica that hangs must not keep anybody out; it records a start of its own when it is promoted.
    if attempt = 1 then
      perform set_config('synchronous_commit', 'local', true);
      perform pg_advisory_xact_lock(7215081947);
    end if;
  end loop;

  select * into before from server_start order by ordinal desc limit 1;
  if here.ordinal is null then
    -- Before the first start nothing is known.
    reached := case when before.ordinal is null then pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
      else start_bytes() end;
    here.ordinal := coalesce(before.ordinal, 0) + 1;
    here.mark := 1 + floor(random() * (1::bigint << 48))::bigint;
    is_same_run := before.system = system_now and before.timeline = timeline_now
      and before.started_at = pg_postmaster_start_time();
    here.wal_bytes := case when is_same_run then pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint else reached end;
    here.next_xid := case when pg_last_wal_replay_lsn() is null then pg_snapshot_xmax(pg_current_snapshot())::text::bigint
      else use_up_transactions(unlogged_max) + 1 end;
    here.event_scope := coalesce(before.event_scope, (select id::text from instance));
    here.renewals := coalesce(before.renewals, 0);
    here.lacking := coalesce(before.lacking, 0);
    here.renewed := false;
    insert into server_start (ordinal, mark, system, timeline, started_at, wal_bytes, next_xid, event_scope, renewed, renewals, lacking)
    values (here.ordinal, here.mark, system_now, timeline_now, pg_postmaster_start_time(), here.wal_bytes, here.next_xid,
      here.event_scope, false, here.renewals, here.lacking);
    insert into server_session (ordinal, system, timeline, started_at)
    values (here.ordinal, system_now, timeline_now, pg_postmaster_start_time())
    on conflict (only_row) do update
      set ordinal = excluded.ordinal, system = excluded.system, timeline = excluded.timeline, started_at = excluded.started_at;
    -- A cursor of a start that has been deleted has expired.
    delete from server_start where ordinal <= here.ordinal - 1000;
    is_lacking := lacks_seen(here.ordinal, seen_mark, seen_bytes, seen_xmax);
    here.renewed := is_lacking or before.ordinal is not null and (
      before.system <> system_now or before.timeline <> timeline_now or reached < before.wal_bytes
      or seen_mark is null and before.started_at <> pg_postmaster_start_time() and pg_last_wal_replay_lsn() is not null);
    if not here.renewed then return here.event_scope; end if;
    here.renewed := false;
  end if;

  if is_lacking then here.lacking := here.mark; end if;
  if not here.renewed then
    perform move_ids_ahead();
    here.event_scope := gen_random_uuid()::text;
    here.renewals := here.renewals + 1;
  end if;
  update server_start set renewed = true, renewals = here.renewals, lacking = here.lacking, event_scope = here.event_scope
  where ordinal = here.ordinal;
  return here.event_scope;
end
$$;
