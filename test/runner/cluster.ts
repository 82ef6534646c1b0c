import { startTestCluster, type TestCluster } from '../support/postgres/cluster.ts';

// What node:test runs before the first file of a run and after the last: one Postgres for all of them.

let cluster: TestCluster | null = null;

export async function globalSetup(): Promise<void> {
  cluster = await startTestCluster();
  process.env['FLEET_TEST_POSTGRES'] = cluster.adminUrl;
  process.env['FLEET_TEST_TEMPLATE'] = cluster.template;
  process.env['FLEET_TEST_CLUSTER_FILES'] = cluster.files;
}

export async function globalTeardown(): Promise<void> {
  await cluster?.stop();
}
