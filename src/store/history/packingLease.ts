import type { Sql } from '../sql/sql.ts';

/** A pod that packs renews its lease with every batch of devices. */
const LEASE_SECONDS = 120;

/**
 * Takes the lease of packing, or renews it, and returns the device after which to go on. Null: another pod packs, or
 * there is nothing to do yet. The lease saves work; what is packed is right without it.
 */
export async function takePackingLease(sql: Sql, holder: string): Promise<number | null> {
  const [row] = await sql<{ after_device_id: number }[]>`
    update packing set holder = ${holder}, leased_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where (holder = ${holder} or leased_until < clock_timestamp()) and pass_due_at <= clock_timestamp()
    returning after_device_id`;
  return row?.after_device_id ?? null;
}

/** Keeps how far the pass has come, and the lease. False: another pod has taken over. */
export async function keepPackingPlace(sql: Sql, holder: string, afterDeviceId: number): Promise<boolean> {
  const { count } = await sql`
    update packing set after_device_id = ${afterDeviceId},
      leased_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where holder = ${holder}`;
  return count > 0;
}

/** Ends a pass over all devices. The next begins after a time. */
export async function endPackingPass(sql: Sql, holder: string, pauseSeconds: number): Promise<void> {
  await sql`
    update packing set after_device_id = 0, holder = null, leased_until = '-infinity',
      pass_due_at = clock_timestamp() + make_interval(secs => ${pauseSeconds})
    where holder = ${holder}`;
}
