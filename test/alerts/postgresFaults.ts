import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { openSql } from '../../src/postgres/sql.ts';
import { bareRequest } from '../support/pod.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { startReplicatedPostgres } from '../support/postgres/replicatedPostgres.ts';
import { PROJECT } from '../support/service.ts';
import { waitFor } from '../support/waitFor.ts';
import { type Fault, OWNER, openSite, repeat, type Site, type SitePod, type Stage } from './site.ts';

/** Calls that Postgres has to answer. */
const readEvents = ({ t }: Stage, pod: SitePod, { key }: Site, callers: number): void => {
  for (let n = 0; n < callers; n++)
    repeat(t, () => bareRequest(`${pod.api}/api/v3/events`, { headers: { 'X-API-Key': key } }));
};

/** What happens to Postgres and its replicas. */
export const POSTGRES_FAULTS: Readonly<Record<string, Fault>> = {
  FleetPostgresLost: {
    fault: 'all processes of Postgres are stopped',
    prepare: async (stage) => {
      const postgres = await startOwnPostgres(stage.t);
      await (await openSite(stage, postgres.url)).pod();
      return { cause: postgres.pause, mend: postgres.resume };
    },
  },
  FleetServerErrors: {
    fault: 'Postgres is shut down while events are read',
    prepare: async (stage) => {
      const postgres = await startOwnPostgres(stage.t);
      const site = await openSite(stage, postgres.url);
      readEvents(stage, await site.pod(), site, 1);
      return { cause: postgres.stop, mend: postgres.start };
    },
  },
  FleetConnectionsExhausted: {
    fault: 'a long transaction has locked the table of events, and ten accounts read events',
    prepare: async (stage) => {
      const { url } = await createDatabase(stage.t);
      const site = await openSite(stage, url);
      const pod = await site.pod();
      const accounts = Array.from({ length: 10 }, (_, n) => `reader-${n}@example.com`);
      for (const email of accounts) await site.admin.account(email);
      const keys = await Promise.all(accounts.map((email) => site.admin.key(email)));
      for (const { key } of keys) readEvents(stage, pod, { ...site, key }, 2);
      const locking = openSql(url, { maxConnections: 1, name: 'test lock' });
      stage.t.after(() => locking.end());
      let end = async (): Promise<void> => undefined;
      return {
        cause: async () => {
          end = await holdTransaction(locking, (tx) => tx`lock table fleet_event in access exclusive mode`);
        },
        mend: () => end(),
      };
    },
  },
  FleetPostgresFull: {
    fault: 'others have taken all connections of Postgres when somebody logs in',
    prepare: async (stage) => {
      const postgres = await startOwnPostgres(stage.t);
      const pod = await (await openSite(stage, postgres.url)).pod();
      const taken: Client[] = [];
      const end = async () => {
        await Promise.all(taken.splice(0).map((client) => client.end()));
      };
      stage.t.after(end);
      let stop = async (): Promise<void> => undefined;
      const take = async (): Promise<void> => {
        const client = new Client({ connectionString: postgres.url });
        client.on('error', () => undefined);
        await client.connect();
        taken.push(client);
      };
      return {
        cause: async () => {
          // Full first: a pod goes on with the connections that it has.
          const isTaken = () =>
            take().then(
              () => true,
              () => false,
            );
          await waitFor(async () => !(await isTaken()));
          stop = repeat(stage.t, take);
          const login = { method: 'POST', headers: { 'Content-Type': 'application/json' } };
          const body = JSON.stringify({ email: OWNER, password: 'not the right one' });
          await bareRequest(`${pod.api}/api/v1/session`, { ...login, body });
        },
        mend: async () => {
          await stop();
          await end();
        },
      };
    },
  },
  FleetReplicaUnused: {
    fault: 'the replica is killed',
    prepare: async (stage) => {
      const postgres = await startReplicatedPostgres(stage.t);
      const site = await openSite(stage, postgres.primaryUrl);
      await site.pod({ DATABASE_REPLICA_URL: postgres.replicaUrl });
      return { cause: postgres.killReplica, mend: () => postgres.startReplica() };
    },
  },
  FleetReplicaForeign: {
    fault: 'the replica was promoted and follows no primary',
    prepare: async (stage) => {
      const postgres = await startReplicatedPostgres(stage.t);
      const site = await openSite(stage, postgres.primaryUrl);
      await site.pod({ DATABASE_REPLICA_URL: postgres.replicaUrl });
      return { cause: postgres.estrangeReplica };
    },
  },
  FleetStandbyBehind: {
    fault: 'replay is paused on a replica while 110 MB are written',
    prepare: async (stage) => {
      const postgres = await startReplicatedPostgres(stage.t);
      const site = await openSite(stage, postgres.primaryUrl);
      await site.pod();
      const replica = openSql(postgres.replicaUrl, { maxConnections: 1, name: 'test' });
      stage.t.after(() => replica.end());
      return {
        cause: async () => {
          await replica`select pg_wal_replay_pause()`;
          for (let n = 0; n < 110; n++)
            await site.sql`select pg_logical_emit_message(true, 'test', repeat('x', 1024 * 1024))`;
        },
        mend: () => replica`select pg_wal_replay_resume()`,
      };
    },
  },
  FleetMigrationStepsWait: {
    fault: 'an upgrade has a step that the rows do not allow',
    prepare: async (stage) => {
      const site = await openSite(stage, (await createDatabase(stage.t)).url);
      const pod = await site.pod();
      const project = await nextVersion(stage);
      return {
        cause: async () => {
          pod.signal('SIGTERM');
          await site.pod({}, project);
        },
        mend: async () => {
          await site.sql`delete from vehicle_number`;
          await site.pod({}, project);
        },
      };
    },
  },
};

/** The folder of a version with one more migration. */
async function nextVersion({ t }: Stage): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-next-'));
  t.after(() => rm(folder, { recursive: true }));
  for (const name of ['src', 'sql', 'package.json'])
    await cp(join(PROJECT, name), join(folder, name), { recursive: true });
  await symlink(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  const migration = join(folder, 'sql', '0999_vehicle_number');
  await writeFile(
    `${migration}.sql`,
    'create table vehicle_number (number int); insert into vehicle_number values (1), (1);',
  );
  await writeFile(
    `${migration}.steps.sql`,
    'create unique index concurrently vehicle_number_key on vehicle_number (number);',
  );
  return folder;
}
