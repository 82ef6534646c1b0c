import type { Sql } from '../../../src/postgres/sql.ts';

/** Puts a few rows into every table that can be large, and into its partitions. The database is as migrated. */
export async function putFewRows(sql: Sql): Promise<void> {
  await sql.unsafe(FEW_ROWS);
}

const FEW_ROWS = `
  insert into world default values;
  insert into account (email, name, world_id) select 'a@example.com', 'A', id from world;
  insert into api_key (account_id, fingerprint, prefix, scopes) select id, sha256('k'), 'abcdef', '{}' from account;
  insert into session (account_id, fingerprint, expires_at) select id, sha256('s'), now() from account;
  insert into share (account_id, fingerprint, device_ids, delay_seconds, hide, show, expires_at)
    select id, sha256('l'), '{1}', 0, '[]', '{}', now() from account;
  insert into login_window values (sha256('w'), 1, now());
  insert into login_address (pair, account_id) select sha256('p'), id from account;
  insert into device (imei, world_id) select 350000000000000 + n, id from world, generate_series(1, 3) n;
  insert into device_move (device_id, world_id, until) select id, world_id, now() from device;
  insert into device_removal (world_id, device_id, imei) select world_id, id, imei from device;
  insert into device_state (device_id) select id from device;
  insert into command (device_id, type) select id, 'reboot' from device;
  insert into area (world_id, account_id, name, color, type, points, dwell_seconds, south, west, north, east)
    select world_id, id, 'Area', '#000000', 'polygon', '\\x00', 0, 0, 0, 1, 1 from account;
  insert into idempotent_answer (account_id, key, body_hash) select id, 'key', sha256('b') from account;
  create table position_w20260309 partition of position for values from ('2026-03-09') to ('2026-03-16');
  create table position_w20260316 partition of position for values from ('2026-03-16') to ('2026-03-23');
  insert into position select id, at, 1, 1, 0, 0, 0, 0
    from device, generate_series(timestamptz '2026-03-10', '2026-03-20', '1 hour') at;
  insert into late_point (device_id, recorded_at) select id, now() from device;
  create table packed_points_w20260309 partition of packed_points for values from ('2026-03-09') to ('2026-03-16');
  insert into packed_points select id, '2026-03-09', '2026-03-10', 0, 0, 1, 1, 1, 0, 1, '\\x00' from device;
  insert into driven_cells (world_id, week, cells, tiles, bytes) select id, 1, 1, 1, '\\x00' from world;
  insert into track_tile select id, 13, 1, 1, '\\x00' from world;
  insert into track_week select id, 1 from world;
  insert into row_box select id, now(), 0, 0, 1, 1 from device;
  insert into fleet_event (world_id, device_id, device_imei, type, message, data, occurred_at)
    select world_id, id, imei, 'alarm', 'Alarm', '{}', now() from device;
  insert into fleet_event (id, world_id, device_id, device_imei, type, message, data, occurred_at) overriding system value
    select 10 * (select max(end_id) from event_part), 1, 1, '350000000000001', 'alarm', 'Alarm', '{}', now();
  insert into webhook (account_id, url, events, retry_policy, max_retries, active, secret)
    select id, 'https://example.com', '{alarm}', 'none', 0, true, '\\x00' from account;
  insert into webhook_left_out (webhook_id, from_at) select id, now() from webhook;
  create table webhook_delivery_w20260309 partition of webhook_delivery for values from ('2026-03-09') to ('2026-03-16');
  insert into webhook_delivery (id, webhook_id, account_id, event_id, event_type, body, created_at)
    select 'd' || n, w.id, account_id, 'e' || n, 'alarm', '{}', '2026-03-10' from webhook w, generate_series(1, 3) n;
  insert into webhook_outbox_batch (event_ids, event_types, bodies) values ('{e}', '{alarm}', '{x}');
  insert into webhook_outbox (account_id, batch_id, places, webhook_ids, size)
    select a.id, b.id, '{1}', '{1}', 1 from account a, webhook_outbox_batch b;
`;
