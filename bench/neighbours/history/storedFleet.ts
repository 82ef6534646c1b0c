import { POLYGON_CENTRE } from '../../setup/containsPaths.ts';
import { storePoints } from '../../setup/storedPoints.ts';
import { type AttackSeeding, accountOf } from '../attack.ts';
import { seedDevices } from '../seeds.ts';

/** Gives the first account of an attack devices with days of points around POLYGON_CENTRE. */
export async function storeFleet(
  seeding: AttackSeeding,
  { devices, ...span }: { devices: number; days: number; everySeconds: number; startMs: number },
): Promise<void> {
  const { sql, firstImei } = seeding;
  const { worldId } = accountOf(seeding);
  await seedDevices(sql, worldId, { firstImei, count: devices, place: { lat: '41.9', lng: '12.5' } });
  const rows = await sql<{ id: number }[]>`select id from device where world_id = ${worldId}`;
  await storePoints(
    sql,
    rows.map(({ id }) => id),
    { devices, ...span, centre: POLYGON_CENTRE, radiusDeg: 0.02 },
  );
}
