import { openSql } from '../../src/postgres/sql.ts';
import { bareRequest, INGEST_TOKEN } from '../support/pod.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { type Fault, openSite, pointOf, repeat, type SitePod, type Stage, VANS } from './site.ts';

const DAY_SECONDS = 86_400;

async function open(stage: Stage) {
  const { url } = await createDatabase(stage.t);
  return { url, ...(await openSite(stage, url)) };
}

/** The answer to points, also where it is an error. */
const post = ({ ingest }: SitePod, points: readonly object[], token = INGEST_TOKEN) =>
  bareRequest(`${ingest}/positions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': token },
    body: JSON.stringify(points),
  });

/** Points of one vehicle that it has stored in some closed days. */
const trackOf = (days: number) =>
  Array.from({ length: days * 48 }, (_, n) => pointOf(VANS[0], 2 * DAY_SECONDS + n * (DAY_SECONDS / 48)));

/** What happens to points on their way into the service, and to those that are stored. */
export const POINT_FAULTS: Readonly<Record<string, Fault>> = {
  FleetPointsWait: {
    fault: 'a long transaction has locked the table of positions',
    prepare: async (stage) => {
      const { url, pod: start } = await open(stage);
      const pod = await start();
      await pod.points([pointOf(VANS[0])]);
      const locking = openSql(url, { maxConnections: 1, name: 'test lock' });
      stage.t.after(() => locking.end());
      let end = async (): Promise<void> => undefined;
      return {
        cause: async () => {
          end = await holdTransaction(locking, (tx) => tx`lock table position in exclusive mode`);
          // Only while it is locked: what waits is stored once it is not.
          for (let sender = 0; sender < 8; sender++)
            void post(
              pod,
              Array.from({ length: 2_000 }, (_, n) => pointOf(VANS[0], 10 + 2_000 * sender + n)),
            ).catch(() => undefined);
        },
        mend: () => end(),
      };
    },
  },
  FleetPointsRejected: {
    fault: 'half of all points are of vehicles that are not registered',
    prepare: async (stage) => {
      const pod = await (await open(stage)).pod();
      repeat(stage.t, () => post(pod, [pointOf(VANS[0])]));
      let stop = async (): Promise<void> => undefined;
      return {
        cause: async () => {
          stop = repeat(stage.t, () => post(pod, [pointOf('359999999999999')]));
        },
        mend: () => stop(),
      };
    },
  },
  FleetNoPoints: {
    fault: 'the senders are cut off after an hour',
    prepare: async (stage) => {
      const pod = await (await open(stage)).pod();
      const stop = repeat(stage.t, () => post(pod, [pointOf(VANS[0])]));
      return { cause: stop, mend: async () => void repeat(stage.t, () => post(pod, [pointOf(VANS[0])])) };
    },
  },
  FleetSecretsRefused: {
    fault: 'somebody tries one ingest token after the other',
    prepare: async (stage) => {
      const pod = await (await open(stage)).pod();
      let stop = async (): Promise<void> => undefined;
      return {
        cause: async () => {
          stop = repeat(stage.t, () => post(pod, [], `guess-${Math.random()}`));
        },
        mend: () => stop(),
      };
    },
  },
  FleetPackingBehind: {
    fault: 'a vehicle sends at once what it has stored in six days',
    prepare: async (stage) => {
      const pod = await (await open(stage)).pod();
      return { cause: () => pod.points(trackOf(6)) };
    },
  },
  FleetHistoryDamaged: {
    fault: 'bytes of packed points are changed',
    prepare: async (stage) => {
      const { pod: start, key, sql, admin } = await open(stage);
      const pod = await start();
      await pod.points(trackOf(2));
      await admin.run('history:pack');
      const from = new Date(Date.now() - 9 * DAY_SECONDS * 1_000).toISOString();
      const to = new Date().toISOString();
      const read = () =>
        bareRequest(`${pod.api}/api/v3/devices/${VANS[0]}/history?from=${from}&to=${to}`, {
          headers: { 'X-API-Key': key },
        });
      return {
        cause: async () => {
          await sql`update packed_points set points = overlay(points placing '\\xffff'::bytea from 5)`;
          repeat(stage.t, read);
        },
      };
    },
  },
};
