import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { SCOPES, scopeNames } from '../../src/access/scopes.ts';
import { COMMANDS } from '../../src/cli/runCommand.ts';
import { readConfig, VARIABLES } from '../../src/config.ts';
import { ERRORS } from '../../src/http/answer.ts';
import { REJECTIONS } from '../../src/ingest/formats/parsePoint.ts';
import { createMetrics } from '../../src/metrics.ts';
import { applicationRoutes } from '../../src/tenants/application.routes.ts';
import { WEBHOOK_TYPES } from '../../src/webhooks/delivery.ts';
import { describedRoutes } from '../support/http/describedApi.ts';
import { guideBlocks, guidePages, guideSection, PROJECT, PROSE } from './guide.ts';
import { findProgram } from './programs.ts';

// What the guide says of the code, held against the code.

/** The cells of the tables of a text, a row each, without head and rule. */
function tableRows(text: string): string[][] {
  const rows = text.split('\n').filter((line) => line.startsWith('|'));
  const isRule = (line: string | undefined) => /^\|[\s:|-]+\|$/.test(line ?? '');
  return rows
    .filter((line, n) => !isRule(line) && !isRule(rows[n + 1]))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll('\\|', '|')),
    );
}

/** What stands in backticks and fits. */
const quoted = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1] as string).filter((each) => pattern.test(each));

const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort();

describe('the tables of the guide', () => {
  test('name every variable of the configuration, and no other', () => {
    const documented = tableRows(guideSection('Configuration')).flatMap(([names = '']) =>
      quoted(names, /^[A-Z_]+$/),
    );
    assert.deepEqual(sorted(documented), sorted(Object.keys(VARIABLES)));
  });

  test('show the defaults of the configuration', () => {
    const config = readConfig({});
    assert.ok(config.ok);
    const {
      host,
      port,
      ingestHost,
      ingestPort,
      dataDir,
      logLevel,
      webhookMinuteMs,
      startupWaitSeconds,
      rateLimits,
    } = config.value;
    const defaults: Readonly<Record<string, string>> = {
      PORT: `${port}, ${host}`,
      INGEST_PORT: `${ingestPort}, ${ingestHost}`,
      DATA_DIR: `\`${dataDir}\``,
      ROLES: `\`${[...config.value.roles].join(',')}\``,
      LOG_LEVEL: logLevel,
      STARTUP_WAIT_SECONDS: String(startupWaitSeconds),
      WEBHOOK_MINUTE_MS: String(webhookMinuteMs),
      RATE_LIMIT_KEY_MINUTE: `${rateLimits.keyMinute}, ${rateLimits.keyHour}, ${rateLimits.ipMinute}`,
    };
    const rows = tableRows(guideSection('Configuration'));
    for (const [name, documented] of Object.entries(defaults)) {
      const row = rows.find(([names = '']) => names.startsWith(`\`${name}\``));
      assert.ok(row?.[1]?.startsWith(documented), `${name}: ${row?.[1]}, not ${documented}`);
    }
  });

  test('name every error code with its status, and no other', () => {
    const documented = tableRows(guideSection('Errors')).map(([code = '', status]) => [
      quoted(code, /./)[0],
      Number(status),
    ]);
    const known = Object.entries(ERRORS).map(([code, [status]]) => [code, status]);
    assert.deepEqual(documented.sort(), known.sort());
  });

  test('name every command with each of its options, and no other', () => {
    const rows = tableRows(guideSection('Administration'));
    const documented = rows.flatMap(([usages = '']) => quoted(usages, /./));
    const nameOf = (usage: string) => usage.split(' ')[0] as string;
    assert.deepEqual(sorted(documented.map(nameOf)), sorted(COMMANDS.map(({ name }) => name)));
    for (const { name, usage } of COMMANDS) {
      const row = documented.find((each) => nameOf(each) === name) ?? '';
      const optionsOf = (text: string) => sorted([...text.matchAll(/--([a-z]+)/g)].map(([option]) => option));
      assert.deepEqual(optionsOf(row), optionsOf(usage), name);
    }
  });

  test('name every route with its permission, and no other', () => {
    const rows = tableRows(PROSE).flatMap(([first = '', second = '']) =>
      [...first.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/\S*)`/g)].map(([, method, path]) => ({
        route: `${method} ${path}`,
        permissions: quoted(second, /^[a-z_]+$/),
      })),
    );
    const isOfIngest = /^\w+ \/(positions|traccar)$/;
    const documented = rows.filter(({ route }) => !isOfIngest.test(route));
    const routes = describedRoutes();
    // What v1 carries of the others is reported once for all.
    const offered = routes.filter(({ versions }) => !versions.includes('v1'));
    const isCarried = applicationRoutes(offered).map(({ method, path }) => `${method} ${path}`);
    const own = routes.filter(
      ({ method, path, versions }) => !(versions.includes('v1') && isCarried.includes(`${method} ${path}`)),
    );
    const known = own.map(({ method, path, versions, scopes }) => {
      const prefix = versions.includes('v2') ? '' : `/api/${versions[0]}`;
      const written = `${prefix}${path}`.replace(/\/$/, '').replaceAll(/[:*](\w+)/g, '{$1}');
      return { route: `${method} ${written}`, permissions: scopeNames(scopes) };
    });
    assert.deepEqual(sorted(documented.map(({ route }) => route)), sorted(known.map(({ route }) => route)));
    for (const { route, permissions } of documented) {
      if (/\/api\/(v1|webhooks)/.test(route)) continue; // their permission is reported once for all
      const { permissions: needed } = known.find((each) => each.route === route) ?? { permissions: [] };
      assert.deepEqual(sorted(permissions), sorted(needed), route);
    }
  });

  test('name every metric of the service, and no other', async () => {
    const gauges = { sizes: () => ({ devices: 0, positions: 0, worlds: 0, stays: 0, keys: 0 }) };
    const nothing = () => 0;
    const { exposition } = createMetrics(
      {
        ...gauges,
        ...{
          feedLagMs: nothing,
          loadMs: nothing,
          waitingPoints: nothing,
          computations: () => new Map(),
          loopLateMs: nothing,
        },
        pools: () => [],
        replica: () => null,
        redis: () => null,
      },
      { version: '1.0.0', commit: 'unknown' },
    );
    const { text } = await exposition();
    const known = [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1] as string);
    const documented = quoted(PROSE, /^(fleet(?!_event$)|process|nodejs)_[a-z0-9_]+$/);
    assert.deepEqual(
      documented.filter((name) => !known.includes(name)),
      [],
    );
    assert.deepEqual(
      sorted(documented.filter((name) => name.startsWith('fleet_'))),
      sorted(known.filter((name) => name.startsWith('fleet_'))),
    );
  });
});

describe('the lists of the guide', () => {
  const cases: readonly [what: string, section: string, pattern: RegExp, known: readonly string[]][] = [
    ['permissions', 'Administration', /^(read|write|send|manage)_[a-z_]+$/, SCOPES],
    [
      'types of webhooks',
      'Webhooks',
      /^(geofence|ignition|parking|tamper|rfid|alarm|webhook_paused|ping)[a-z_]*$/,
      WEBHOOK_TYPES,
    ],
    [
      'reasons to refuse a point',
      'Ingest: sending points',
      /^(INVALID|FUTURE|TOO|UNKNOWN)_[A-Z]+$/,
      Object.keys(REJECTIONS),
    ],
  ];
  for (const [what, section, pattern, known] of cases) {
    test(`${what}: all, and no other`, () => {
      assert.deepEqual(sorted(quoted(guideSection(section), pattern)), sorted(known));
    });
  }

  test('folders of the source: all, and no other', () => {
    const map = guideBlocks.find(({ text }) => text.startsWith('src/'))?.text ?? '';
    const documented = [...map.matchAll(/^ {2}([a-z]+)\//gm)].map((match) => match[1] as string);
    const known = readdirSync(join(PROJECT, 'src'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    assert.deepEqual(sorted(documented), sorted(known));
  });
});

describe('what the guide refers to', () => {
  const slugsOf = (prose: string): string[] =>
    [...prose.matchAll(/^#+ (.+)$/gm)].map((match) =>
      (match[1] as string)
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, '')
        .replaceAll(' ', '-'),
    );
  const linksOf = (text: string): string[] =>
    [...text.matchAll(/\]\(((?!https?:)[^)\s]+)\)/g)].map((match) => match[1] as string);
  const slugs = new Map(guidePages.map(({ path, prose }) => [path, slugsOf(prose)]));

  for (const { path, text, prose } of guidePages) {
    test(`${path}: every link leads to a heading or a file`, () => {
      const broken = linksOf(text).filter((link) => {
        const [file = '', heading] = link.split('#');
        const target = file === '' ? path : join(dirname(path), file);
        if (!existsSync(join(PROJECT, target))) return true;
        return heading !== undefined && slugs.get(target)?.includes(heading) !== true;
      });
      assert.deepEqual(broken, []);
    });

    test(`${path}: every file of the source that it names exists`, () => {
      const named = quoted(prose, /^(src|test|bench|sql)\/\S+\.\w+$/);
      assert.deepEqual(
        named.filter((file) => !existsSync(join(PROJECT, file))),
        [],
      );
    });
  }

  test('every page of docs is reached from the README', () => {
    const [readme] = guidePages;
    const linked = linksOf(readme?.text ?? '').map((link) => link.split('#')[0]);
    assert.deepEqual(
      guidePages.slice(1).flatMap(({ path }) => (linked.includes(path) ? [] : [path])),
      [],
    );
  });

  test('the README can be read in ten minutes', () => {
    const [readme] = guidePages;
    assert.ok((readme?.text.split('\n').length ?? 0) <= 350);
  });

  test('no path of one machine, and no host but examples and the pages of others', () => {
    const text = guidePages.map((page) => page.text).join('\n');
    assert.doesNotMatch(text, /(?<![\w.])\/(home|root|work|tmp|Users|mnt|opt)\//);
    const hosts = [...text.matchAll(/https?:\/\/([^/\s"'`):;]+)/g)].map((match) => match[1] as string);
    const fine =
      /^(127\.0\.0\.1|10\.0\.0\.\d+|HOST|\$API|\$POD|fleet_api|([a-z]+\.)?example\.com|github\.com|unpkg\.com|tile38\.com|pgbackrest\.org|docs\.protomaps\.com|www\.(naturalearthdata\.com|standardwebhooks\.com|traccar\.org))$/;
    assert.deepEqual(
      hosts.filter((host) => !fine.test(host)),
      [],
    );
  });
});

describe('the blocks of the guide', () => {
  const skip = findProgram('bash') === null && 'there is no bash on this machine';
  for (const { language, name, text, page, line } of guideBlocks) {
    if (language === 'sh') {
      test(`${page}: the commands in line ${line} (${name ?? 'no name'}) can be read by a shell`, {
        skip,
      }, () => {
        // Where answers are shown too, commands stand behind a dollar sign.
        const commands = text.split('\n').filter((each) => each.startsWith('$ '));
        const script = commands.length > 0 ? commands.map((each) => each.slice(2)).join('\n') : text;
        const { status, stderr } = spawnSync('bash', ['-n'], { input: script, encoding: 'utf8' });
        assert.equal(status, 0, stderr);
      });
    }
  }

  test('have names that are used: every named one is run by a test', () => {
    const tests = globSync('test/{guide,pods}/*.ts', { cwd: PROJECT })
      .map((file) => readFileSync(join(PROJECT, file), 'utf8'))
      .join('\n');
    const unused = guideBlocks.filter(({ name }) => name !== null && !tests.includes(`'${name}'`));
    assert.deepEqual(
      unused.map(({ name }) => name),
      [],
    );
  });

  test('every fence that is opened is closed', () => {
    const fences = guidePages.flatMap(({ text }) => text.match(/^```/gm) ?? []);
    assert.equal(fences.length, guideBlocks.length * 2);
  });
});
