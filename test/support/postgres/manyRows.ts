import type { Sql } from '../../../src/postgres/sql.ts';

const DEVICES = 1_000;
const WEEKS = ['2026-02-16', '2026-02-23', '2026-03-02', '2026-03-09', '2026-03-16'];
const WEEK_MINUTES = 7 * 24 * 60;

/**
 * Puts a fleet into a migrated database that has driven for four weeks: so many points or a few more, and entries of areas.
 * Returns how many points.
 */
export async function putManyRows(sql: Sql, points: number, events: number): Promise<number> {
  const perWeek = Math.ceil(points / DEVICES / (WEEKS.length - 1));
  const weeks = WEEKS.slice(0, -1).map((week, n) => {
    const name = `position_w${week.replaceAll('-', '')}`;
    return `
      create table ${name} partition of position for values from ('${week}') to ('${WEEKS[n + 1]}');
      insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, received_at)
      select id, at, 1 + n / 1e6, 1, 0, 40, 90, 8, at + interval '1 second'
      from device, generate_series(0, ${perWeek - 1}) n,
        lateral (select timestamptz '${week}' + n * interval '${WEEK_MINUTES / perWeek} minutes') t (at);`;
  });
  await sql.unsafe(`
    set statement_timeout = 0;
    insert into world default values;
    insert into account (email, name, world_id) select 'a@example.com', 'A', id from world;
    insert into device (imei, world_id) select 350000000000000 + n, id from world, generate_series(1, ${DEVICES}) n;
    insert into device_state (device_id) select id from device;
    ${weeks.join('')}
    insert into fleet_event (world_id, device_id, device_imei, type, message, data, area_id, direction, occurred_at)
    select world_id, d.id, imei, 'geofence', 'Enters Depot', '{"area": "Depot"}', 1 + n % 100, 'entry',
      timestamptz '${WEEKS[0]}' + n * interval '40 minutes'
    from device d, generate_series(1, ${Math.ceil(events / DEVICES)}) n;
    reset statement_timeout;`);
  return DEVICES * weeks.length * perWeek;
}
