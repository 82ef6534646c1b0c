import type { Sql } from '../postgres/sql.ts';

/** A pod that packs renews its lease with every batch of devices. */
const LEASE_SECONDS = 120;

/**
 * Takes the lease of packing, or renews it. False: another pod packs, or there is nothing to do yet; neither counts when
 * `isUrgent`. The lease saves work; what is packed is right without it.
 */
export async function takePackingLease(sql: Sql, holder: string, isUrgent: boolean): Promise<boolean> {
  const { count } = await sql`
    update packing set holder = ${holder}, leased_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where ${isUrgent}
      or ((holder = ${holder} or leased_until < clock_timestamp()) and pass_due_at <= clock_timestamp())`;
  return count > 0;
}

/** Renews the lease. False: another pod has taken over. */
export async function keepPackingLease(sql: Sql, holder: string): Promise<boolean> {
  const { count } = await sql`
    update packing set leased_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
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
