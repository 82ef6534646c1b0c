import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import type { Env } from '../../src/config.ts';
import { resolveTool, skipWithoutTools } from '../tools/tools.ts';
import {
  assertConfigures,
  DEPLOY,
  INGEST_PORT,
  PORT,
  SECRETS,
  STOP_SECONDS,
  skipWithout,
} from './deployed.ts';
import { deployFile, guideBlock, PROJECT } from './guide.ts';
import { findProgram } from './programs.ts';
import { paste } from './shell.ts';

// What an operator starts from deploy/, held against the code: its variables, ports, probes and time limits.

const run = promisify(execFile);

const secondsOf = (text: string): number => Number(/^(\d+)s$/.exec(text)?.[1]);

test('the image opens the ports that the files name, on all addresses', () => {
  const dockerfile = readFileSync(join(PROJECT, 'Dockerfile'), 'utf8');
  assert.match(dockerfile, new RegExp(`^EXPOSE ${PORT} ${INGEST_PORT}$`, 'm'));
  assert.match(dockerfile, /^ENV .*HOST=0\.0\.0\.0 INGEST_HOST=0\.0\.0\.0/m);
});

interface ComposeService {
  readonly image?: string;
  readonly build?: { readonly context: string };
  readonly command?: readonly string[];
  readonly environment?: Env;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>> | readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly stop_grace_period?: string;
  readonly networks?: { readonly default: { readonly ipv4_address: string } };
}

/** The schema of the Compose specification, as a linter of such files brings it. */
function composeSchema() {
  const folder = dirname(fileURLToPath(resolveTool('dclint/package.json')));
  const schema = JSON.parse(readFileSync(join(folder, 'schemas', 'compose.schema.json'), 'utf8')) as object;
  // The validator knows the draft by an address without https. The formats are those of Compose.
  const formats = { duration: true, expose: true, ports: true, subnet_ip_address: true } as const;
  return new Ajv({ strict: false, allErrors: true, formats }).compile({
    ...schema,
    $schema: 'http://json-schema.org/draft-07/schema',
  });
}

/** Docker Compose as a plugin of docker, or as a program. Version 1 does not read files of the specification. */
async function findCompose(): Promise<{ program: string; args: readonly string[] } | null> {
  for (const [name, ...args] of [['docker', 'compose'], ['docker-compose']] as const) {
    const program = findProgram(name);
    if (program === null) continue;
    const said = await run(program, [...args, 'version', '--short']).catch(() => null);
    if (said !== null && Number.parseInt(said.stdout.replace(/^v/, ''), 10) >= 2) return { program, args };
  }
  return null;
}

describe('compose.yaml', () => {
  const text = deployFile('compose.yaml').replaceAll(
    /\$\{(\w+):\?[^}]*\}/g,
    (_, name: string) => SECRETS[name] ?? assert.fail(`${name} has a value`),
  );
  const compose = parse(text, { merge: true }) as {
    readonly services: Readonly<Record<string, ComposeService>>;
    readonly volumes: Readonly<Record<string, null>>;
    readonly networks: {
      readonly default: { readonly ipam: { readonly config: readonly { readonly subnet: string }[] } };
    };
  };
  const services = Object.entries(compose.services);
  const pods = services.filter(([, { image }]) => image === 'fleet-tracking-service');
  const service = (name: string): ComposeService => compose.services[name] ?? assert.fail(name);

  test('has all its secrets from the command of the guide', { skip: skipWithout('openssl') }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'fleet-compose-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    assert.equal(await paste(t, guideBlock('compose.env'), folder, {}).ended, 0);
    const made = Object.fromEntries(
      (await readFile(join(folder, '.env'), 'utf8'))
        .trim()
        .split('\n')
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    ) as Record<string, string>;
    const asked = [...deployFile('compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name);
    assert.deepEqual(Object.keys(made).toSorted(), [...new Set(asked)].toSorted());
    const { INGEST_TOKEN, SECRETS_KEY } = made;
    const { DATABASE_URL, REDIS_URL } = SECRETS;
    assertConfigures({ DATABASE_URL, REDIS_URL, INGEST_TOKEN, SECRETS_KEY }, 'deploy/.env');
  });

  test('has all that is needed, of a version that is named', () => {
    assert.deepEqual(
      services.map(([name]) => name),
      ['pod-a', 'pod-b', 'haproxy', 'postgres', 'redis', 'prometheus', 'grafana'],
    );
    for (const [name, { image = '', build }] of services) {
      if (build === undefined) assert.match(image, /^[\w/]+:v?\d/, name);
      else assert.ok(existsSync(join(DEPLOY, build.context, 'Dockerfile')), name);
    }
  });

  test('names only files, volumes and services that are there', () => {
    for (const [name, { volumes = [], depends_on: before = [] }] of services) {
      for (const volume of volumes) {
        const [source = '', target] = volume.split(':');
        const isThere = source.startsWith('./')
          ? existsSync(join(DEPLOY, source))
          : source in compose.volumes;
        assert.ok(isThere && target?.startsWith('/'), `${name}: ${volume}`);
      }
      const conditions: readonly (readonly [string, { readonly condition?: string }])[] = Array.isArray(
        before,
      )
        ? before.map((other: string) => [other, {}])
        : Object.entries(before);
      for (const [other, { condition }] of conditions) {
        const { healthcheck } = service(other);
        assert.ok(condition !== 'service_healthy' || healthcheck !== undefined, `${name}: ${other}`);
      }
    }
  });

  test('opens nothing but the machine itself, each port once', () => {
    const opened = services.flatMap(([, { ports = [] }]) => ports);
    for (const port of opened) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/);
    assert.equal(new Set(opened.map((port) => port.split(':')[1])).size, opened.length);
  });

  test('configures pods that start, trust haproxy and nobody else, and may end what they have begun', () => {
    assert.equal(pods.length, 2);
    const proxy = service('haproxy').networks?.default.ipv4_address;
    for (const [name, { environment = {}, stop_grace_period: grace = '' }] of pods) {
      assertConfigures(environment, name);
      assert.equal(environment['TRUST_PROXY'], proxy);
      assert.ok(secondsOf(grace) > STOP_SECONDS, `${name} has time to stop`);
      const { hostname, username, password, pathname } = new URL(environment['DATABASE_URL'] ?? '');
      const postgres = service(hostname).environment;
      assert.deepEqual(
        [username, password, pathname],
        [postgres?.['POSTGRES_USER'], postgres?.['POSTGRES_PASSWORD'], `/${postgres?.['POSTGRES_DB']}`],
      );
      service(new URL(environment['REDIS_URL'] ?? '').hostname);
    }
    const subnet = compose.networks.default.ipam.config[0]?.subnet ?? '';
    assert.ok(proxy?.startsWith(subnet.replace(/\.0\/24$/, '.')), 'haproxy has an address of the network');
  });

  test('lets Postgres take the connections of the pods, and of one more during an upgrade', () => {
    const { command = [] } = service('postgres');
    const [, connections] = /max_connections=(\d+)/.exec(command.join(' ')) ?? [];
    assert.ok(Number(connections) >= 33 * (pods.length + 1) + 10);
  });

  test('has a Prometheus that scrapes all pods, and a Grafana with the dashboard', () => {
    const prometheus = parse(deployFile('prometheus/prometheus.yml')) as {
      readonly rule_files: readonly string[];
      readonly scrape_configs: readonly {
        readonly job_name: string;
        readonly static_configs: readonly { readonly targets: readonly string[] }[];
      }[];
    };
    const [scrape] = prometheus.scrape_configs;
    assert.equal(scrape?.job_name, 'fleet');
    assert.deepEqual(
      scrape?.static_configs[0]?.targets,
      pods.map(([name]) => `${name}:${INGEST_PORT}`),
    );
    for (const file of prometheus.rule_files) assert.ok(existsSync(join(DEPLOY, 'prometheus', file)), file);
    const source = parse(deployFile('grafana/provisioning/datasources/prometheus.yaml')) as {
      readonly datasources: readonly { readonly url: string }[];
    };
    service(new URL(source.datasources[0]?.url ?? '').hostname);
    const { providers } = parse(deployFile('grafana/provisioning/dashboards/fleet.yaml')) as {
      readonly providers: readonly { readonly options: { readonly path: string } }[];
    };
    const mounted = service('grafana').volumes?.some((volume) =>
      volume.includes(`:${providers[0]?.options.path}/fleet.json`),
    );
    assert.ok(mounted, 'the dashboard is where Grafana looks for it');
  });

  test('is as the specification of Compose has it, with no field that it does not know', {
    skip: skipWithoutTools(),
  }, () => {
    const isComposed = composeSchema();
    assert.ok(isComposed(compose), JSON.stringify(isComposed.errors));
    const misspelled = structuredClone(compose) as { services: Record<string, object> };
    Object.assign(misspelled.services['redis'] ?? {}, { heathcheck: {} });
    assert.ok(!isComposed(misspelled));
    assert.deepEqual(
      isComposed.errors?.map(({ params }) => params),
      [{ additionalProperty: 'heathcheck' }],
    );
  });

  test('is what docker compose takes', async (t) => {
    const compose = await findCompose();
    if (compose === null) {
      t.skip('there is no docker compose of version 2 or later');
      return;
    }
    const config = (file: string) =>
      run(compose.program, [...compose.args, '-f', file, 'config', '-q'], {
        env: { ...process.env, ...SECRETS },
      });
    await config(join(DEPLOY, 'compose.yaml'));
    const folder = await mkdtemp(join(tmpdir(), 'fleet-compose-'));
    t.after(() => rm(folder, { recursive: true }));
    const misspelled = join(folder, 'compose.yaml');
    await writeFile(misspelled, text.replace('healthcheck:', 'heathcheck:'));
    await assert.rejects(config(misspelled), /heathcheck/);
  });

  test('has a haproxy in front of all pods, that asks what a pod answers', () => {
    const config = deployFile('haproxy/haproxy.cfg');
    const servers = [...config.matchAll(/^ {4}server (\S+) (\S+):(\d+)$/gm)].map(
      ([, , host, port]) => `${host}:${port}`,
    );
    const expected = [PORT, INGEST_PORT].flatMap((port) => pods.map(([name]) => `${name}:${port}`));
    assert.deepEqual(servers, expected);
    const bound = [...config.matchAll(/^ {4}bind :(\d+)$/gm)].map(([, port]) => port);
    assert.deepEqual(
      bound,
      service('haproxy').ports?.map((port) => port.split(':').at(-1)),
    );
  });
});

test('prometheus.yml is what promtool takes', { skip: skipWithout('promtool') }, async () => {
  const cwd = join(DEPLOY, 'prometheus');
  await run(findProgram('promtool') as string, ['check', 'config', 'prometheus.yml'], { cwd });
});

test('haproxy.cfg is what haproxy takes', { skip: skipWithout('haproxy') }, async () => {
  const { stderr } = await run(findProgram('haproxy') as string, [
    '-c',
    '-f',
    join(DEPLOY, 'haproxy', 'haproxy.cfg'),
  ]);
  // Pods have these names in the network of compose.yaml only.
  const warnings = stderr
    .split('\n')
    .filter((line) => /\[(?:WARNING|ALERT)\]/.test(line) && !line.includes('could not resolve address'));
  assert.deepEqual(warnings, []);
});

describe('fleet.service', () => {
  const text = deployFile('systemd/fleet.service');

  test('starts what the image starts, and gives it more time to stop than it takes', () => {
    const [, started = ''] = /^ExecStart=\/usr\/bin\/(.*)$/m.exec(text) ?? [];
    const dockerfile = readFileSync(join(PROJECT, 'Dockerfile'), 'utf8');
    const [, command = '[]'] = /^CMD (.*)$/m.exec(dockerfile) ?? [];
    assert.deepEqual(started.split(' '), JSON.parse(command));
    assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1]) > STOP_SECONDS);
  });

  test('is what systemd takes', { skip: skipWithout('systemd-analyze') }, async (t) => {
    const made = await mkdtemp(join(tmpdir(), 'fleet-unit-'));
    t.after(() => rm(made, { recursive: true, force: true }));
    const unit = deployFile('systemd/fleet.service', {
      '/usr/bin/node': process.execPath,
      '/opt/fleet': PROJECT,
    });
    await writeFile(join(made, 'fleet.service'), unit);
    const { stdout, stderr } = await run(findProgram('systemd-analyze') as string, [
      'verify',
      join(made, 'fleet.service'),
    ]);
    assert.equal(`${stdout}${stderr}`, '');
  });
});
