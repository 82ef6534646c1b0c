-- Starts of the server, as the service has met them. A database whose files were put back, and a replica that was promoted
-- before it had everything, go on under the same names: they give positions in the log, transaction ids and ids of rows
-- again. So every start is written down before anything is written under it, and cursors name theirs.
--
-- server_promotion (0012) is not read any more: the start of a promoted replica is one of these.
create table server_start (
  ordinal bigint primary key,
  -- Random, so that starts which a database has forgotten are told apart from those that it has had since.
  mark bigint not null unique,
  noted_at timestamptz not null default clock_timestamp(),
  -- The cluster, and the transaction that wrote the row of the instance: a restored dump has others.
  system text not null,
  timeline bigint not null,
  started_at timestamptz not null,
  -- Of earlier starts this one has the log up to here, and transactions below this one.
  wal_bytes bigint not null,
  next_xid bigint not null,
  -- What the ids of webhook events are made from, so that an id which is given again makes another one.
  event_scope text not null,
  -- Whether the server may lack what was acknowledged under an earlier start: then ids were moved ahead.
  renewed boolean not null,
  -- How often that was so.
  renewals integer not null,
  -- The mark of the last start that lacked something a pod had seen; 0: none.
  lacking bigint not null
);

-- Empty after a crash, on a promoted replica and in a copy of a running server, since it is not logged. Left as it was by
-- a shutdown.
create unlogged table server_session (
  only_row boolean primary key default true check (only_row),
  ordinal bigint not null,
  system text not null,
  timeline bigint not null,
  started_at timestamptz not null
);

-- Names the present start. enter_server() has written it down for every connection of the service.
create function server_mark() returns bigint language sql as $$
  select mark from server_start order by ordinal desc limit 1
$$;

-- Everything up to here is on disk, and with it all that a reader can have seen.
create function flushed_bytes() returns bigint language sql as $$
  select case when pg_is_in_recovery() then null
    else pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint end
$$;

-- Moves every sequence ahead, by more than can have been lost and by chance, so that a database which is put back twice
-- gives different ids each time. Ids stay below 2^53: there is room for a million times.
create function move_ids_ahead() returns void language plpgsql as $$
declare
  s record;
  step bigint;
begin
  for s in
    select c.oid, c.relname from pg_class c
    where c.relkind = 'S' and c.relnamespace = (select relnamespace from pg_class where oid = 'server_start'::regclass)
  loop
    step := case when s.relname like 'fleet\_event%' then 1::bigint << 32 else 1::bigint << 20 end;
    perform setval(s.oid::regclass, coalesce(pg_sequence_last_value(s.oid::regclass), 0) + step + floor(random() * step)::bigint);
  end loop;
end
$$;

-- Whether this start lacks something of what was seen under another one.
create function lacks_seen(start_ordinal bigint, seen_mark bigint, seen_bytes bigint, seen_xmax bigint)
returns boolean language sql as $$
  select case
    when seen_mark is null then false
    else not exists (select from server_start s where s.mark = seen_mark and s.ordinal <= start_ordinal)
      or exists (
        select from server_start later
        where later.ordinal <= start_ordinal
          and later.ordinal > (select s.ordinal from server_start s where s.mark = seen_mark)
          and (later.wal_bytes < seen_bytes or later.next_xid < seen_xmax))
    end
$$;

-- The first statement of every connection of the service, with what its pod has seen: a start, how much of the log was on
-- disk, and the end of a snapshot. Nothing for a process that has seen nothing. Returns what ids of webhook events are
-- made from; null on a replica, where nothing may be done.
--
-- One process handles a start, the others wait for it. Ids are renewed when the server may lack what was acknowledged:
-- a pod has seen more, the timeline or the cluster is another one, or the server has recovered and nobody is there who
-- knows how far it had come. When a pod has seen more, transaction ids mean something else as well (server_history).
create function enter_server(seen_mark bigint, seen_bytes bigint, seen_xmax bigint) returns text
language plpgsql as $$
declare
  here server_start;
  before server_start;
  system_now text := (select system_identifier || '.' || (select xmin from instance) from pg_control_system());
  timeline_now bigint;
  reached bigint;
  is_lacking boolean;
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
    -- A replica that hangs must not keep anybody out; it writes a start of its own when it is promoted.
    if attempt = 1 then
      perform set_config('synchronous_commit', 'local', true);
      perform pg_advisory_xact_lock(7215081947);
    end if;
  end loop;

  select * into before from server_start order by ordinal desc limit 1;
  if here.ordinal is null then
    -- Where recovery ended, or where the shutdown was. Of what came before the first one nobody knows.
    reached := pg_wal_lsn_diff(case when before.ordinal is null then pg_current_wal_insert_lsn()
      else coalesce(pg_last_wal_replay_lsn(), (select checkpoint_lsn from pg_control_checkpoint())) end, '0/0')::bigint;
    here.ordinal := coalesce(before.ordinal, 0) + 1;
    here.mark := 1 + floor(random() * (1::bigint << 48))::bigint;
    here.wal_bytes := reached;
    here.next_xid := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
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
    -- A cursor of a start that is not there any more has expired.
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

-- As before, and under another name where a pod has seen what is not there any more.
create or replace function server_history() returns text language sql as $$
  select system_identifier || '/' || server_timeline() || '/'
    || (select oid from pg_database where datname = current_database()) || '.' || (select xmin from instance)
    || coalesce((select '/' || nullif(lacking, 0) from server_start order by ordinal desc limit 1), '')
  from pg_control_system()
$$;

-- As before, and more for every time that ids were renewed: versions of worlds are given again as well.
create or replace function version_base() returns bigint language sql as $$
  select (greatest(0, server_timeline() - first_timeline)
    + coalesce((select renewals from server_start order by ordinal desc limit 1), 0)) << 32
  from change_horizon
$$;

select enter_server(null, null, null);
