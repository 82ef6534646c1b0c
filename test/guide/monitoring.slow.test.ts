import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { ownerPod } from '../support/ownerPod.ts';
import { request } from '../support/pod.ts';
import { findFreePort } from '../support/ports.ts';
import { waitFor } from '../support/waitFor.ts';
import { guideBlocks, guidePages, guideSection, PROJECT } from './guide.ts';
import { findProgram } from './programs.ts';
import { startPrometheus } from './prometheus.ts';
import { paste } from './shell.ts';

// What an operator copies from deploy/: the rules, the dashboard, the probes, and the commands of the runbook.

const run = promisify(execFile);
const RULES = join(PROJECT, 'deploy', 'prometheus');
const RULE_TESTS = ['alerts.test.yml', 'alerts.long.test.yml'];
const DASHBOARD = join(PROJECT, 'deploy', 'grafana', 'fleet.json');
const skip = (...names: string[]): string | false => {
  const missing = names.filter((name) => findProgram(name) === null);
  return missing.length > 0 && `there is no ${missing.join(', ')} on this machine`;
};

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

const VAN = '350000000000001';
const owner = ownerPod({ devices: [{ imei: VAN }] }, async ({ pod, key }) => {
  await pod.points([{ imei: VAN, recorded_at: Date.now(), latitude: 41.9, longitude: 12.5 }]);
  await pod.get('/api/v3/devices', key);
});
const { pod } = owner;
const address = (url: string): string => new URL(url).host;
const metrics = async (): Promise<string> => (await request(`${pod.ingest}/metrics`)).text;

const alerts = async (): Promise<string[]> =>
  [...(await readFile(join(RULES, 'alerts.yml'), 'utf8')).matchAll(/- alert: (\w+)/g)].map(
    ([, name]) => name as string,
  );

describe('the alerts', () => {
  test('are rules that Prometheus takes, and fire and rest as they say', {
    skip: skip('promtool'),
  }, async () => {
    const promtool = findProgram('promtool') as string;
    await run(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yml'], { cwd: RULES });
    await run(promtool, ['test', 'rules', ...RULE_TESTS], { cwd: RULES });
  });

  test('have a test each, and a section of the runbook with their name', async () => {
    const names = await alerts();
    assert.ok(names.length > 0);
    const texts = await Promise.all(RULE_TESTS.map((name) => readFile(join(RULES, name), 'utf8')));
    const tests = texts.join('\n');
    const tested = new Set([...tests.matchAll(/alertname: (\w+)$/gm)].map(([, name]) => name));
    assert.deepEqual([...tested].toSorted(), names.toSorted());
    const runbook = guidePages.find(({ path }) => path === 'docs/runbook.md')?.text ?? '';
    const sections = [...runbook.matchAll(/^## (Fleet\w+)$/gm)].map(([, name]) => name);
    assert.deepEqual(sections, names);
    const rules = await readFile(join(RULES, 'alerts.yml'), 'utf8');
    for (const name of names)
      assert.ok(rules.includes(`runbook: docs/runbook.md#${name.toLowerCase()}\n`), name);
  });
});

test('the rules and the dashboard ask for metrics that a pod tells', async () => {
  const told = new Set([...(await metrics()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
  for (const file of [join(RULES, 'alerts.yml'), DASHBOARD]) {
    const asked = (await readFile(file, 'utf8')).matchAll(/\b(?:fleet|process|nodejs)_[a-z0-9_]+/g);
    for (const [name] of asked) assert.ok(told.has(name.replace(/_(?:bucket|count|sum)$/, '')), name);
  }
});

test('every metric of the service is on the dashboard, and among those that the guide says how to watch', async () => {
  const told = [...(await metrics()).matchAll(/^# TYPE (fleet_\S+)/gm)].map(([, name]) => name as string);
  assert.ok(told.length > 30);
  const dashboard = await readFile(DASHBOARD, 'utf8');
  const watched = guideSection('What to watch');
  for (const name of told) {
    assert.match(dashboard, new RegExp(`\\b${name}(?:_(?:bucket|count))?\\b`));
    assert.ok(watched.includes(`\`${name}\``), name);
  }
});

test('no panel of the dashboard covers another one', async () => {
  const { panels } = JSON.parse(await readFile(DASHBOARD, 'utf8')) as { panels: readonly Panel[] };
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const covered = new Map<string, string>();
  for (const { title, gridPos } of panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.equal(covered.get(`${x} ${y}`), undefined, title);
        covered.set(`${x} ${y}`, title);
      }
    }
  }
});

test('the metrics are named and written as promtool wants them', { skip: skip('promtool') }, async () => {
  const child = spawn(findProgram('promtool') as string, ['check', 'metrics'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
  child.stdin.end(await metrics());
  const [code] = await once(child, 'close');
  assert.deepEqual([code, said], [0, '']);
});

test('a pod answers the probes of the manifests, haproxy and the image', async () => {
  const files = ['deploy/kubernetes/deployment.yaml', 'deploy/haproxy/haproxy.cfg', 'Dockerfile'];
  for (const file of files) {
    const text = await readFile(join(PROJECT, file), 'utf8');
    const paths = [...text.matchAll(/(?:httpGet: \{ path: |httpchk GET |3001}`?)(\/\w+)/g)].map(
      ([, path]) => path,
    );
    assert.ok(paths.length > 0, file);
    for (const path of paths)
      for (const url of [pod.api, pod.ingest])
        assert.equal((await request(`${url}${path}`)).status, 200, path);
  }
});

test('Prometheus scrapes a pod, takes every query of the dashboard, and tells that a pod is down', {
  skip: skip('prometheus'),
}, async (t) => {
  // Two minutes are long for a test.
  const rules = (await readFile(join(RULES, 'alerts.yml'), 'utf8')).replace('for: 2m', 'for: 1s');
  const prometheus = await startPrometheus(t, rules, 1_000);
  const gone = `127.0.0.1:${await findFreePort()}`;
  await prometheus.scrape(address(pod.ingest), gone);
  await waitFor(async () => (await prometheus.query('fleet_memory_devices{job="fleet"}'))?.length === 1);
  const { panels } = JSON.parse(await readFile(DASHBOARD, 'utf8')) as { panels: readonly Panel[] };
  const asked = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
  assert.ok(asked.length > 25);
  for (const { title, expr } of asked) {
    const text = expr
      .replaceAll('$job', 'fleet')
      .replaceAll('$instance', '.*')
      .replaceAll('$__rate_interval', '5m');
    assert.notEqual(await prometheus.query(text), null, `${title}: ${text}`);
  }
  const firing = async (): Promise<string[]> =>
    (await prometheus.firing()).map(({ alertname, instance }) => `${alertname} ${instance}`);
  await waitFor(async () => (await firing()).includes(`FleetPodDown ${gone}`));
  assert.deepEqual(await firing(), [`FleetPodDown ${gone}`], 'and of the pod that runs, nothing');
});

test('the commands of the runbook work', { skip: skip('bash', 'curl', 'psql', 'npm') }, async (t) => {
  const commands = guideBlocks.filter(({ page, name }) => page === 'docs/runbook.md' && name === 'runbook');
  assert.ok(commands.length >= 8);
  const env = { API: address(pod.api), POD: address(pod.ingest), DATABASE_URL: owner.url };
  for (const { text, line } of commands) {
    const shell = paste(t, text, PROJECT, env);
    assert.equal(await shell.ended, 0, `line ${line}:\n${shell.lines.join('\n')}`);
    assert.ok(shell.lines.length > 0, `line ${line} says nothing`);
  }
});
