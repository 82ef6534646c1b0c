import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseIpAddress } from '../src/access/ipAddress.ts';
import { type Config, type Env, readAdminConfig, readConfig } from '../src/config.ts';
import { runs } from './support/torture.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');
const TOKEN = 'sixteen-letters!';
const POSTGRES = 'postgres://u:hidden-word@db:5432/fleet';

function config(env: Env): Config {
  const read = readConfig(env);
  assert.ok(read.ok, read.ok ? '' : read.error.join('\n'));
  return read.value;
}

function errorsOf(env: Env): string[] {
  const read = readConfig(env);
  assert.ok(!read.ok);
  return read.error;
}

describe('an empty environment', () => {
  test('gives the documented defaults', () => {
    const { trustedProxies, webhookAllowNets, ...rest } = config({});
    assert.deepEqual(rest, {
      host: '127.0.0.1',
      port: 3000,
      ingestHost: '127.0.0.1',
      ingestPort: 3001,
      ingestTokens: null,
      databaseUrl: null,
      replicaUrl: null,
      redisUrl: null,
      dataDir: '.data',
      roles: new Set(['api', 'ingest', 'delivery']),
      rateLimits: { keyMinute: 120, keyHour: 1000, ipMinute: 120 },
      secretsKey: null,
      startupWaitSeconds: 60,
      webhookMinuteMs: 60_000,
      eventRetentionDays: 730,
      consoleTiles: null,
      traces: null,
      logLevel: 'info',
      buildCommit: null,
    });
    assert.ok(trustedProxies.isEmpty && webhookAllowNets.isEmpty);
  });

  test('and blank variables are the same', () => {
    const names = [
      'PORT',
      'HOST',
      'DATABASE_URL',
      'REDIS_URL',
      'ROLES',
      'TRUST_PROXY',
      'SECRETS_KEY',
      'LOG_LEVEL',
    ];
    assert.deepEqual(config(Object.fromEntries(names.map((name) => [name, ' ']))), config({}));
  });
});

describe('a full environment', () => {
  const env: Env = {
    PORT: '0',
    HOST: '0.0.0.0',
    INGEST_PORT: '0',
    INGEST_HOST: '::',
    INGEST_TOKEN: 'hidden-word-of-today, hidden-word-of-yesterday',
    DATABASE_URL: POSTGRES,
    DATABASE_REPLICA_URL: 'postgres://u:hidden-word@copy,copy2/fleet',
    REDIS_URL: 'rediss://:hidden-word@cache:6380/1',
    DATA_DIR: '/data',
    ROLES: ' delivery, api ',
    TRUST_PROXY: '10.0.0.0/8, 2001:db8::1',
    RATE_LIMIT_KEY_MINUTE: '0',
    RATE_LIMIT_KEY_HOUR: '1',
    RATE_LIMIT_IP_MINUTE: '1000000000',
    SECRETS_KEY: KEY,
    WEBHOOK_ALLOW_NETS: '192.168.0.0/16',
    STARTUP_WAIT_SECONDS: '0',
    WEBHOOK_MINUTE_MS: '50',
    EVENT_RETENTION_DAYS: '90',
    CONSOLE_TILES: 'https://tiles.example.com/style.json?key=hidden-word',
    LOG_LEVEL: 'debug',
    BUILD_COMMIT: 'f3cc4d5',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://u:hidden-word@collector:4318/otlp',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=hidden-word, authorization=Basic%20aGk6eW91PQ==',
    OTEL_SERVICE_NAME: 'fleet-berlin',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '.25',
  };

  test('is read as it stands', () => {
    const read = config(env);
    assert.equal(read.port, 0);
    assert.equal(read.ingestHost, '::');
    assert.deepEqual(read.ingestTokens, ['hidden-word-of-today', 'hidden-word-of-yesterday']);
    assert.equal(read.databaseUrl, env['DATABASE_URL']);
    assert.equal(read.replicaUrl, env['DATABASE_REPLICA_URL']);
    assert.equal(read.redisUrl, env['REDIS_URL']);
    assert.deepEqual([...read.roles], ['api', 'delivery']);
    assert.deepEqual(read.rateLimits, { keyMinute: 0, keyHour: 1, ipMinute: 1_000_000_000 });
    assert.deepEqual(read.secretsKey, Buffer.alloc(32, 7));
    assert.equal(read.startupWaitSeconds, 0);
    assert.equal(read.webhookMinuteMs, 50);
    assert.equal(read.eventRetentionDays, 90);
    assert.deepEqual(read.consoleTiles, { styleUrl: env['CONSOLE_TILES'] });
    assert.equal(read.logLevel, 'debug');
    assert.equal(read.buildCommit, 'f3cc4d5');
    assert.deepEqual(read.traces, {
      endpoint: 'https://u:hidden-word@collector:4318/otlp',
      headers: { 'x-api-key': 'hidden-word', authorization: 'Basic aGk6eW91PQ==' },
      serviceName: 'fleet-berlin',
      rule: { ratio: 0.25, isParentBased: false },
    });
    const inside = parseIpAddress('10.1.2.3');
    const outside = parseIpAddress('11.1.2.3');
    assert.ok(inside !== null && outside !== null);
    assert.ok(read.trustedProxies.has(inside) && !read.trustedProxies.has(outside));
  });

  test('is frozen', () => {
    const read = config(env);
    assert.ok(Object.isFrozen(read) && Object.isFrozen(read.rateLimits));
  });
});

describe('a wrong variable stops the start with a line that names it', () => {
  const cases: readonly { env: Env; line: RegExp }[] = [
    { env: { PORT: '80a' }, line: /^PORT must be a whole number from 0 to 65535 \(it is "80a"\)$/ },
    { env: { PORT: '65536' }, line: /^PORT / },
    { env: { PORT: '-1' }, line: /^PORT / },
    { env: { PORT: '1e3' }, line: /^PORT / },
    { env: { PORT: '0x50' }, line: /^PORT / },
    { env: { PORT: '80.5' }, line: /^PORT / },
    { env: { INGEST_PORT: '3000' }, line: /^INGEST_PORT must differ from PORT/ },
    { env: { INGEST_TOKEN: 'two words and not one' }, line: /^INGEST_TOKEN must be printable ASCII/ },
    { env: { INGEST_TOKEN: 'of the sixteen é' }, line: /^INGEST_TOKEN must be printable ASCII/ },
    { env: { INGEST_TOKEN: 'fifteen-letters' }, line: /^INGEST_TOKEN must have at least 16 characters/ },
    {
      env: { INGEST_TOKEN: `${TOKEN},fifteen-letters` },
      line: /^INGEST_TOKEN must have at least 16 characters/,
    },
    { env: { INGEST_TOKEN: `${TOKEN},` }, line: /^INGEST_TOKEN must have at least 16 characters/ },
    {
      env: { DATABASE_URL: 'mysql://u:hidden-word@db', INGEST_TOKEN: TOKEN, SECRETS_KEY: KEY },
      line: /^DATABASE_URL must be a URL that starts with postgres:\/\/ or postgresql:\/\//,
    },
    {
      env: {
        DATABASE_URL: 'postgres://u:p@a,b:x/d?target_session_attrs=any',
        INGEST_TOKEN: TOKEN,
        SECRETS_KEY: KEY,
      },
      line: /^DATABASE_URL has a host \(number 2\) .*name:port; must have primary or read-write for target_session_attrs/,
    },
    {
      env: { DATABASE_URL: `${POSTGRES}?sslrootcert=nowhere.pem`, INGEST_TOKEN: TOKEN, SECRETS_KEY: KEY },
      line: /^DATABASE_URL names files that this process cannot read: sslrootcert$/,
    },
    {
      env: {
        DATABASE_URL: POSTGRES,
        DATABASE_REPLICA_URL: `${POSTGRES}?target_session_attrs=primary`,
        INGEST_TOKEN: TOKEN,
        SECRETS_KEY: KEY,
      },
      line: /^DATABASE_REPLICA_URL must have standby or prefer-standby for target_session_attrs/,
    },
    {
      env: { DATABASE_REPLICA_URL: POSTGRES },
      line: /^DATABASE_REPLICA_URL needs DATABASE_URL: an embedded Postgres has no replica$/,
    },
    {
      env: { REDIS_URL: 'localhost:6379' },
      line: /^REDIS_URL must be a URL that starts with redis:\/\/ or rediss:\/\//,
    },
    { env: { REDIS_URL: 'hidden-word' }, line: /^REDIS_URL / },
    {
      env: { ROLES: 'api,web' },
      line: /^ROLES must be a comma list of api, ingest and delivery \(it is "api,web"\)$/,
    },
    { env: { ROLES: ',' }, line: /^ROLES / },
    { env: { TRUST_PROXY: 'true' }, line: /^TRUST_PROXY must be a comma list of addresses and networks/ },
    { env: { TRUST_PROXY: '10.0.0.0/33' }, line: /^TRUST_PROXY / },
    { env: { WEBHOOK_ALLOW_NETS: '10.0.0.0/8,intranet' }, line: /^WEBHOOK_ALLOW_NETS .*"intranet"/ },
    { env: { RATE_LIMIT_KEY_MINUTE: 'unlimited' }, line: /^RATE_LIMIT_KEY_MINUTE / },
    { env: { RATE_LIMIT_KEY_HOUR: '-5' }, line: /^RATE_LIMIT_KEY_HOUR / },
    { env: { RATE_LIMIT_IP_MINUTE: '1.5' }, line: /^RATE_LIMIT_IP_MINUTE / },
    {
      env: { SECRETS_KEY: 'hidden-word' },
      line: /^SECRETS_KEY must be 32 bytes in base64; make one: openssl rand -base64 32$/,
    },
    { env: { SECRETS_KEY: Buffer.alloc(31).toString('base64') }, line: /^SECRETS_KEY / },
    { env: { SECRETS_KEY: `${KEY}!` }, line: /^SECRETS_KEY / },
    {
      env: { EVENT_RETENTION_DAYS: '1' },
      line: /^EVENT_RETENTION_DAYS must be a whole number from 2 to 3650/,
    },
    { env: { WEBHOOK_MINUTE_MS: '0' }, line: /^WEBHOOK_MINUTE_MS must be a whole number from 1 / },
    {
      env: { CONSOLE_TILES: 'ftp://u:hidden-word@x/style.json' },
      line: /^CONSOLE_TILES must be the URL of a MapLibre style \(https:\/\/…\) or the path of a \.pmtiles file$/,
    },
    { env: { CONSOLE_TILES: 'tiles.zip' }, line: /^CONSOLE_TILES must be the URL of a MapLibre style / },
    {
      env: { CONSOLE_TILES: 'nowhere.pmtiles' },
      line: /^CONSOLE_TILES must be a \.pmtiles file that this process can read \(it is "nowhere\.pmtiles"\)$/,
    },
    {
      env: { LOG_LEVEL: 'verbose' },
      line: /^LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent \(it is "verbose"\)$/,
    },
    {
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'hidden-word:4317' },
      line: /^OTEL_EXPORTER_OTLP_ENDPOINT must be the URL of an OTLP receiver over HTTP/,
    },
    {
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector?key=hidden-word' },
      line: /^OTEL_EXPORTER_OTLP_ENDPOINT must be/,
    },
    ...['hidden-word', 'x key=hidden-word', 'x=hidden-word%', 'x=hidden-word%0A', 'x=hidden-word,'].map(
      (OTEL_EXPORTER_OTLP_HEADERS) => ({
        env: { OTEL_EXPORTER_OTLP_HEADERS },
        line: /^OTEL_EXPORTER_OTLP_HEADERS must be a comma list of name=value, with values percent-encoded$/,
      }),
    ),
    {
      env: { OTEL_TRACES_SAMPLER: 'jaeger_remote' },
      line: /^OTEL_TRACES_SAMPLER must be one of always_on, .*parentbased_traceidratio \(it is "jaeger_remote"\)$/,
    },
    ...['1.1', '-0.1', '1e-3', 'all'].map((OTEL_TRACES_SAMPLER_ARG) => ({
      env: { OTEL_TRACES_SAMPLER_ARG },
      line: /^OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1 \(it is "/,
    })),
  ];
  for (const { env, line } of cases) {
    test(JSON.stringify(env), () => {
      const lines = errorsOf(env);
      assert.equal(lines.length, 1, lines.join('\n'));
      assert.match(lines[0] ?? '', line);
    });
  }

  test('DATABASE_URL makes the token and the key necessary', () => {
    assert.deepEqual(errorsOf({ DATABASE_URL: POSTGRES }), [
      'INGEST_TOKEN must be set with DATABASE_URL',
      'SECRETS_KEY must be set with DATABASE_URL; make one: openssl rand -base64 32',
    ]);
  });

  test('everything that is wrong is reported at once', () => {
    const names = ['DATABASE_URL', 'INGEST_TOKEN', 'SECRETS_KEY', 'PORT', 'ROLES', 'LOG_LEVEL'];
    const lines = errorsOf({ DATABASE_URL: 'x', PORT: 'x', ROLES: 'x', LOG_LEVEL: 'x' });
    assert.deepEqual(lines.map((line) => line.split(' ')[0]).sort(), names.sort());
  });

  test('ports may be equal where only one of them is opened', () => {
    assert.equal(config({ INGEST_PORT: '3000', ROLES: 'ingest' }).ingestPort, 3000);
    assert.equal(config({ PORT: '0', INGEST_PORT: '0' }).port, 0);
  });
});

test('no line repeats what may be a secret', () => {
  const word = 'hidden-word';
  const secrets = fc.constantFrom(
    `${word} x`,
    `postgres://u:${word},b/`,
    `postgres://u:${word}@a,:5/${word}`,
    `http://u:${word}@h`,
    `\u0001${word}`,
    word,
  );
  fc.assert(
    fc.property(secrets, secrets, secrets, secrets, (DATABASE_URL, REDIS_URL, INGEST_TOKEN, SECRETS_KEY) => {
      const DATABASE_REPLICA_URL = DATABASE_URL;
      const read = readConfig({ DATABASE_URL, DATABASE_REPLICA_URL, REDIS_URL, INGEST_TOKEN, SECRETS_KEY });
      assert.ok(!read.ok && !read.error.join('\n').includes(word));
    }),
    { seed: 1, numRuns: runs(25) },
  );
});

describe('the environment of a command', () => {
  test('needs neither token nor key', () => {
    const read = readAdminConfig({ DATABASE_URL: POSTGRES });
    assert.deepEqual(read.ok && read.value, {
      databaseUrl: POSTGRES,
      redisUrl: null,
      dataDir: '.data',
      logLevel: 'info',
      ingestHost: '127.0.0.1',
      ingestPort: 3001,
      ingestTokens: null,
    });
  });

  test('is checked by the same rules, and only where the command uses it', () => {
    const read = readAdminConfig({ REDIS_URL: 'x', INGEST_PORT: 'x', PORT: 'x', ROLES: 'x' });
    assert.deepEqual(!read.ok && read.error.map((line) => line.split(' ')[0]), ['REDIS_URL', 'INGEST_PORT']);
  });
});
