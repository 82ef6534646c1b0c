import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { compile } from '../support/http/typedClient.ts';
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
import { deployFile, guideBlocks, guideSection } from './guide.ts';
import { findProgram } from './programs.ts';

// The manifests for Kubernetes, held against the code and against each other.

const run = promisify(execFile);

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  // biome-ignore lint/suspicious/noExplicitAny: every kind has another shape
  readonly spec: any;
}

describe('the manifests', () => {
  const folder = join(DEPLOY, 'kubernetes');
  const { resources } = parse(deployFile('kubernetes/kustomization.yaml')) as {
    readonly resources: readonly string[];
  };
  const manifests = resources.flatMap((file) =>
    parseAllDocuments(deployFile(`kubernetes/${file}`)).map((document) => document.toJS() as Manifest),
  );
  const specOf = (kind: string) =>
    manifests.find((manifest) => manifest.kind === kind)?.spec ?? assert.fail(kind);
  const deployment = specOf('Deployment');
  const pod = deployment.template.spec;
  const [container] = pod.containers;
  const labels = deployment.template.metadata.labels;
  const portOf = (name: string): number =>
    container.ports.find((port: { name: string }) => port.name === name)?.containerPort;

  test('are all files of the folder', () => {
    assert.deepEqual([...resources, 'kustomization.yaml'].toSorted(), readdirSync(folder).toSorted());
    assert.match(deployFile('kubernetes/deployment.yaml'), /^\s*image: fleet-tracking-service$/m);
  });

  test('select the pods that the deployment makes', () => {
    const selectors = [
      deployment.selector.matchLabels,
      specOf('PodDisruptionBudget').selector.matchLabels,
      specOf('NetworkPolicy').podSelector.matchLabels,
      ...pod.topologySpreadConstraints.map(
        (each: { labelSelector: { matchLabels: object } }) => each.labelSelector.matchLabels,
      ),
      ...manifests.filter(({ kind }) => kind === 'Service').map(({ spec }) => spec.selector),
    ];
    for (const selector of selectors) assert.deepEqual(selector, labels);
  });

  test('name the ports of the image', () => {
    assert.deepEqual([portOf('api'), portOf('ingest')], [PORT, INGEST_PORT]);
    const named = [
      ...['startupProbe', 'livenessProbe', 'readinessProbe'].map((probe) => container[probe].httpGet.port),
      ...manifests.filter(({ kind }) => kind === 'Service').map(({ spec }) => spec.ports[0].targetPort),
      ...specOf('NetworkPolicy').ingress.flatMap(({ ports }: { ports: { port: string }[] }) =>
        ports.map(({ port }) => port),
      ),
    ];
    for (const name of named) assert.ok(portOf(name) !== undefined, name);
  });

  test('configure a pod that starts, with secrets that are referred to', () => {
    const env: Record<string, string> = {};
    for (const { name, value, valueFrom } of container.env) {
      assert.equal(value, undefined, `${name} has its value from elsewhere`);
      const { key } = valueFrom.secretKeyRef ?? valueFrom.configMapKeyRef;
      assert.equal(key, name);
      env[name] = valueFrom.secretKeyRef === undefined ? '127.0.0.1' : (SECRETS[name] ?? assert.fail(name));
    }
    assertConfigures(env, 'the deployment');
  });

  test('give a pod more time to stop than it takes', () => {
    const [command, seconds] = container.lifecycle.preStop.exec.command;
    assert.equal(command, 'sleep');
    assert.ok(pod.terminationGracePeriodSeconds >= STOP_SECONDS + Number(seconds));
  });

  test('refer to a secret that the guide has made, and to values of the configuration', () => {
    const guide = guideSection('Deploy');
    const { configMapGenerator } = parse(deployFile('kubernetes/kustomization.yaml')) as {
      readonly configMapGenerator: readonly { readonly name: string; readonly literals: readonly string[] }[];
    };
    const [made] = configMapGenerator;
    const given = made?.literals.map((literal) => literal.slice(0, literal.indexOf('=')));
    for (const { valueFrom } of container.env) {
      const { name, key, optional } = valueFrom.secretKeyRef ?? valueFrom.configMapKeyRef;
      assert.equal(name, made?.name, 'the secret has the name of the configuration');
      if (valueFrom.configMapKeyRef !== undefined) assert.ok(given?.includes(key), key);
      else if (optional !== true) assert.ok(guide.includes(`\`${key}\``), key);
    }
    const [block] = guideBlocks.filter(({ text }) => text.includes('kubectl create secret'));
    assert.match(block?.text ?? '', new RegExp(`^kubectl create secret generic ${made?.name} `, 'm'));
  });

  test('let everything through that a pod calls or answers, and open no port beside', () => {
    const { ingress, egress } = specOf('NetworkPolicy');
    const portsOf = (rules: readonly { ports: readonly { port: string | number; protocol: string }[] }[]) =>
      new Set(rules.flatMap(({ ports }) => ports.map(({ port, protocol }) => `${protocol} ${port}`)));
    const answered = manifests
      .filter(({ kind }) => kind === 'Service')
      .flatMap(({ spec }) => spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort));
    assert.deepEqual([...portsOf(ingress)].toSorted(), answered.map((name) => `TCP ${name}`).toSorted());
    const portOfUrl = (name: string) => `TCP ${new URL(SECRETS[name] ?? '').port}`;
    // Names are asked for over both; receivers of webhooks are reached over https.
    const called = ['UDP 53', 'TCP 53', portOfUrl('DATABASE_URL'), portOfUrl('REDIS_URL'), 'TCP 443'];
    assert.deepEqual([...portsOf(egress)].toSorted(), called.toSorted());
  });

  test('keep a pod while another one is drained', () => {
    assert.ok(specOf('PodDisruptionBudget').minAvailable < deployment.replicas);
    const { maxUnavailable, maxSurge } = deployment.strategy.rollingUpdate;
    assert.ok(maxUnavailable === 0 && maxSurge > 0, 'a new pod is ready before an old one ends');
  });

  test('are what kustomize takes', { skip: skipWithout('kubectl') }, async () => {
    const { stdout } = await run(findProgram('kubectl') as string, ['kustomize', folder]);
    const built = parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
    assert.deepEqual(
      built.map(({ kind }) => kind).toSorted(),
      [...manifests.map(({ kind }) => kind), 'ConfigMap'].toSorted(),
    );
    assert.match(stdout, /image: fleet-tracking-service:\d/);
  });

  test('are resources of Kubernetes, without a field that it does not know', {
    skip: skipWithoutTools(),
  }, async (t) => {
    assert.deepEqual(await complaintsAbout(t, manifests), []);
  });

  const FAULTS: readonly (readonly [string, RegExp, (copy: Manifest) => void])[] = [
    [
      'a field that there is not',
      /readinesProbe/,
      ({ spec }) => (spec.template.spec.containers[0].readinesProbe = {}),
    ],
    [
      'a number that is a text',
      /'string' is not assignable to type 'number'/,
      ({ spec }) => (spec.template.spec.containers[0].ports[0].containerPort = '3000'),
    ],
    ['a field that is missing', /selector/, ({ spec }) => delete spec.selector],
    ['a field in the wrong place', /replicas/, ({ spec }) => (spec.template.spec.replicas = 2)],
  ];
  for (const [what, complaint, fault] of FAULTS)
    test(`are refused with ${what}`, { skip: skipWithoutTools() }, async (t) => {
      const copy = structuredClone(manifests.find(({ kind }) => kind === 'Deployment')) as Manifest;
      fault(copy);
      const complaints = await complaintsAbout(t, [copy]);
      assert.equal(complaints.length, 1);
      assert.match(complaints[0] ?? '', complaint);
    });
});

/** What the types that are made from the API of Kubernetes say about resources. */
async function complaintsAbout(t: TestContext, resources: readonly Manifest[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-manifests-'));
  t.after(() => rm(folder, { recursive: true }));
  const types = dirname(fileURLToPath(resolveTool('kubernetes-types/package.json')));
  const lines = resources.map(({ apiVersion, kind, ...others }, n) => {
    const [version = '', group = 'core'] = apiVersion.split('/').toReversed();
    const file = join(types, group.replace(/\..*$/, ''), `${version}.d.ts`);
    return `import type { ${kind} as T${n} } from '${file}';
export const resource${n}: T${n} = ${JSON.stringify({ apiVersion, kind, ...others })};`;
  });
  await writeFile(join(folder, 'resources.mts'), lines.join('\n'));
  return compile(folder, ['resources.mts']);
}
