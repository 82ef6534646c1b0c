/** Microseconds of processor time of this process since it started. */
export function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

export const rssMb = (): number => process.memoryUsage.rss() / 2 ** 20;

export interface Usage {
  readonly cpuUs: number;
  readonly rssMb: number;
}

/** The answer of a worker that serves. */
export interface ServerUsage extends Usage {
  readonly port: number;
}

export const usageNow = (): Usage => ({ cpuUs: cpuUs(), rssMb: rssMb() });
