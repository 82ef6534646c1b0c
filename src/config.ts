import { closeSync, openSync, readSync } from 'node:fs';
import { type CleanedEnv, customCleanEnv, EnvError, makeExactValidator } from 'envalid';
import { CidrSet, parseCidrs } from './access/ipAddress.ts';
import type { ConsoleTiles } from './console/consoleTiles.ts';
import { fail, ok, type Result } from './lib/result.ts';
import { parsePostgresUrl, parseReplicaUrl } from './postgres/postgresUrl.ts';
import { parseRedisUrl } from './redis/redisUrl.ts';
import { SAMPLERS, type SamplingRule, samplingRule } from './traces/sampling.ts';

// The error of each completes a line that begins with the name of the variable: "PORT must be …". It shows the value
// only where that can be no secret.

const SHOWN_MAX_CHARS = 60;

const text = makeExactValidator((value) => value);

/** A whole number in plain decimal digits. */
const wholeNumber = (min: number, max: number) =>
  makeExactValidator((value) => {
    const number = Number(value);
    if (/^[0-9]{1,15}$/.test(value) && number >= min && number <= max) return number;
    throw invalid(`must be a whole number from ${min} to ${max}`, value);
  });

const oneOf = <T extends string>(allowed: readonly T[]) =>
  makeExactValidator((value) => {
    const found = allowed.find((candidate) => candidate === value);
    if (found !== undefined) return found;
    throw invalid(`must be one of ${allowed.join(', ')}`, value);
  });

/** A comma list of some of `allowed`, in their order. */
const someOf = <T extends string>(allowed: readonly T[]) =>
  makeExactValidator<ReadonlySet<T>>((value) => {
    const names = entriesOf(value);
    const found = allowed.filter((candidate) => names.includes(candidate));
    if (names.every((name) => found.some((candidate) => candidate === name))) return new Set(found);
    throw invalid(`must be a comma list of ${allowed.slice(0, -1).join(', ')} and ${allowed.at(-1)}`, value);
  });

/** A URL of a server, which may carry a password and name files. */
const serverUrl = (parse: (text: string) => Result<NamedFiles, string[]>) =>
  makeExactValidator((value) => {
    const parsed = parse(value);
    if (!parsed.ok) throw new EnvError(parsed.error.join('; '));
    const unread = parsed.value.files.filter(({ path }) => startOf(path, 1) === null);
    if (unread.length === 0) return value;
    const names = unread.map(({ parameter }) => parameter).join(', ');
    throw new EnvError(`names files that this process cannot read: ${names}`);
  });

interface NamedFiles {
  readonly files: readonly { readonly parameter: string; readonly path: string }[];
}

/** A comma list of addresses and networks. */
const cidrs = makeExactValidator<CidrSet>((value) => {
  const parsed = parseCidrs(value);
  if (parsed.ok) return parsed.value;
  throw invalid('must be a comma list of addresses and networks such as 10.0.0.0/8', parsed.error.join(','));
});

/** Secrets in a comma list. They travel in headers and URLs, so they are plain and too long to be guessed. */
const tokens = (minChars: number) =>
  makeExactValidator<readonly string[]>((value) => {
    const entries = entriesOf(value);
    if (!entries.every((entry) => /^[\x21-\x7e]*$/.test(entry))) {
      throw new EnvError('must be printable ASCII characters without blanks; a comma separates tokens');
    }
    if (entries.every((entry) => entry.length >= minChars)) return Object.freeze(entries);
    throw new EnvError(
      `must have at least ${minChars} characters, each token of it; make one: openssl rand -hex 16`,
    );
  });

/** A secret of exactly `bytes` bytes in canonical base64, with or without padding. */
const base64 = (bytes: number) =>
  makeExactValidator((value) => {
    const key = Buffer.from(value, 'base64');
    const canonical = key.toString('base64').replace(/={1,2}$/, '') === value.replace(/={1,2}$/, '');
    if (key.length === bytes && canonical) return key;
    throw new EnvError(`must be ${bytes} bytes in base64; make one: openssl rand -base64 ${bytes}`);
  });

/** Every archive begins like this: the magic number and the version (PMTiles specification, version 3, section 2). */
const PMTILES_START = 'PMTiles\u0003';

/** A URL may carry a key, so it is not repeated. */
const tiles = makeExactValidator<ConsoleTiles>((value) => {
  const protocol = URL.parse(value)?.protocol;
  if (protocol === 'https:' || protocol === 'http:') return { styleUrl: value };
  if (protocol !== undefined || !/\.pmtiles$/i.test(value))
    throw new EnvError('must be the URL of a MapLibre style (https://…) or the path of a .pmtiles file');
  const start = startOf(value, PMTILES_START.length);
  if (start === null) throw invalid('must be a .pmtiles file that this process can read', value);
  if (start !== PMTILES_START) throw invalid('must be a PMTiles archive of version 3', value);
  return { file: value };
});

/** A collector of traces. Its URL may carry a password, so it is not repeated. */
const collectorUrl = makeExactValidator((value) => {
  const url = URL.parse(value);
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (isHttp && url.search === '' && url.hash === '') return value;
  throw new EnvError('must be the URL of an OTLP receiver over HTTP, such as http://collector:4318');
});

/** `name=value` in a comma list; values are percent-encoded. They are secrets as a rule. */
const httpHeaders = makeExactValidator<Readonly<Record<string, string>>>((value) => {
  const headers = entriesOf(value).map(readHeader);
  if (headers.every((header) => header !== null)) return Object.fromEntries(headers);
  throw new EnvError('must be a comma list of name=value, with values percent-encoded');
});

function readHeader(entry: string): [name: string, value: string] | null {
  const [, name = '', encoded = ''] =
    /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*([\x21-\x7e]*)$/.exec(entry) ?? [];
  const value = decodedOrNull(encoded);
  return name === '' || value === null || !/^[\x20-\x7e]*$/.test(value) ? null : [name, value];
}

function decodedOrNull(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

const share = makeExactValidator((value) => {
  const number = Number(value);
  if (/^(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)$/.test(value) && number <= 1) return number;
  throw invalid('must be a number from 0 to 1', value);
});

type Role = 'api' | 'ingest' | 'delivery';
type LogLevel = (typeof LOG_LEVELS)[number];

/** How this pod runs, read once from the environment. Frozen; null means "not set, and that is fine". */
export interface Config {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly ingestHost: string;
  readonly ingestPort: number;
  /** One, or several while they are changed. Null: one is generated and kept in dataDir (only without databaseUrl). */
  readonly ingestTokens: readonly string[] | null;
  /** Null: the embedded Postgres in dataDir. */
  readonly databaseUrl: string | null;
  /** A replica of that, which answers what is heavy. Null: there is none. */
  readonly replicaUrl: string | null;
  /** How long a start waits for a Postgres that cannot be asked yet. */
  readonly startupWaitSeconds: number;
  /** Null: limits and delivery schedule in this process, which is then the only one. */
  readonly redisUrl: string | null;
  readonly dataDir: string;
  readonly roles: ReadonlySet<Role>;
  readonly trustedProxies: CidrSet;
  /** Calls per window; 0 means no limit. */
  readonly rateLimits: { readonly keyMinute: number; readonly keyHour: number; readonly ipMinute: number };
  /** 32 bytes. Null: generated and kept in dataDir (only without databaseUrl). */
  readonly secretsKey: Buffer | null;
  readonly webhookAllowNets: CidrSet;
  readonly webhookMinuteMs: number;
  /** Events are kept for so long. */
  readonly eventRetentionDays: number;
  /** Null: the world that comes with the service. */
  readonly consoleTiles: ConsoleTiles | null;
  readonly logLevel: LogLevel;
  /** Null: nothing is traced. */
  readonly traces: TraceConfig | null;
  /** The commit that an image was built from. Null: git is asked for the commit of the folder. */
  readonly buildCommit: string | null;
}

/** Where traces go, and which calls are recorded. */
export interface TraceConfig {
  /** The URL of a collector that takes OTLP over HTTP. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly rule: SamplingRule;
}

/** What the administrative commands use of it. */
export type AdminConfig = Pick<
  Config,
  'databaseUrl' | 'redisUrl' | 'dataDir' | 'logLevel' | 'ingestHost' | 'ingestPort' | 'ingestTokens'
>;

export type Env = Readonly<Record<string, string | undefined>>;

const ROLES: readonly Role[] = ['api', 'ingest', 'delivery'];
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export const DEFAULT_DATA_DIR = '.data';
const LOOPBACK = '127.0.0.1';
const NO_NETWORKS = new CidrSet([]);

const portNumber = wholeNumber(0, 65_535);
const callsPerWindow = wholeNumber(0, 1_000_000_000);

const ADMIN_VARIABLES = {
  DATABASE_URL: serverUrl(parsePostgresUrl)({ default: undefined }),
  REDIS_URL: serverUrl(parseRedisUrl)({ default: undefined }),
  DATA_DIR: text({ default: DEFAULT_DATA_DIR }),
  LOG_LEVEL: oneOf(LOG_LEVELS)({ default: 'info' }),
  INGEST_HOST: text({ default: LOOPBACK }),
  INGEST_PORT: portNumber({ default: 3001 }),
  INGEST_TOKEN: tokens(16)({ default: undefined }),
};

/** Every variable of the service, with its rule and its default. */
export const VARIABLES = {
  ...ADMIN_VARIABLES,
  DATABASE_REPLICA_URL: serverUrl(parseReplicaUrl)({ default: undefined }),
  HOST: text({ default: LOOPBACK }),
  PORT: portNumber({ default: 3000 }),
  ROLES: someOf(ROLES)({ default: new Set(ROLES) }),
  TRUST_PROXY: cidrs({ default: NO_NETWORKS }),
  RATE_LIMIT_KEY_MINUTE: callsPerWindow({ default: 120 }),
  RATE_LIMIT_KEY_HOUR: callsPerWindow({ default: 1000 }),
  RATE_LIMIT_IP_MINUTE: callsPerWindow({ default: 120 }),
  SECRETS_KEY: base64(32)({ default: undefined }),
  WEBHOOK_ALLOW_NETS: cidrs({ default: NO_NETWORKS }),
  STARTUP_WAIT_SECONDS: wholeNumber(0, 3_600)({ default: 60 }),
  WEBHOOK_MINUTE_MS: wholeNumber(1, 86_400_000)({ default: 60_000 }),
  EVENT_RETENTION_DAYS: wholeNumber(2, 3_650)({ default: 730 }),
  CONSOLE_TILES: tiles({ default: undefined }),
  BUILD_COMMIT: text({ default: undefined }),
  OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl({ default: undefined }),
  OTEL_EXPORTER_OTLP_HEADERS: httpHeaders({ default: {} }),
  OTEL_SERVICE_NAME: text({ default: 'fleet' }),
  OTEL_TRACES_SAMPLER: oneOf(SAMPLERS)({ default: 'parentbased_traceidratio' }),
  OTEL_TRACES_SAMPLER_ARG: share({ default: 0.01 }),
};

/** What only a service with an embedded Postgres generates for itself. */
const NEEDED_WITH_DATABASE_URL = {
  INGEST_TOKEN: 'must be set with DATABASE_URL',
  SECRETS_KEY: 'must be set with DATABASE_URL; make one: openssl rand -base64 32',
};

/**
 * Reads every variable of the service. The error lists all that is wrong, one line for each variable, and says what to
 * do; it never repeats the value of a secret or of a URL, which may carry a password. A blank variable counts as not
 * set.
 */
export function readConfig(env: Env): Result<Config, string[]> {
  const { values, errors } = readVariables(env, VARIABLES);
  if (isSet(env['DATABASE_URL'])) {
    for (const [name, error] of Object.entries(NEEDED_WITH_DATABASE_URL)) {
      if (!isSet(env[name])) errors.push(`${name} ${error}`);
    }
  } else if (isSet(env['DATABASE_REPLICA_URL'])) {
    errors.push('DATABASE_REPLICA_URL needs DATABASE_URL: an embedded Postgres has no replica');
  }
  if (errors.length > 0) return fail(errors);
  const config = configOf(values);
  return opensOnePortTwice(config)
    ? fail([`INGEST_PORT must differ from PORT: ingest has a listener of its own (it is "${config.port}")`])
    : ok(config);
}

/** Reads only the variables that the commands use; the same rules and messages as `readConfig`. */
export function readAdminConfig(env: Env): Result<AdminConfig, string[]> {
  const { values, errors } = readVariables(env, ADMIN_VARIABLES);
  return errors.length > 0 ? fail(errors) : ok(Object.freeze(adminConfigOf(values)));
}

/** The values are only valid when `errors` is empty. */
function readVariables<S>(env: Env, variables: S): { values: Readonly<CleanedEnv<S>>; errors: string[] } {
  const trimmed = Object.entries(env).flatMap(([name, value]) =>
    isSet(value) ? [[name, value.trim()]] : [],
  );
  const lines: string[] = [];
  const values = customCleanEnv(Object.fromEntries(trimmed), variables, (cleaned) => cleaned, {
    reporter({ errors }) {
      for (const [name, error] of Object.entries(errors as Record<string, Error>)) {
        lines.push(`${name} ${error.message}`);
      }
    },
  });
  return { values, errors: lines };
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value.trim() !== '';
}

function opensOnePortTwice({ roles, port, ingestPort, host, ingestHost }: Config): boolean {
  return roles.has('api') && port !== 0 && port === ingestPort && host === ingestHost;
}

function adminConfigOf(values: CleanedEnv<typeof ADMIN_VARIABLES>): AdminConfig {
  return {
    databaseUrl: values.DATABASE_URL ?? null,
    redisUrl: values.REDIS_URL ?? null,
    dataDir: values.DATA_DIR,
    logLevel: values.LOG_LEVEL,
    ingestHost: values.INGEST_HOST,
    ingestPort: values.INGEST_PORT,
    ingestTokens: values.INGEST_TOKEN ?? null,
  };
}

function configOf(values: CleanedEnv<typeof VARIABLES>): Config {
  return Object.freeze({
    ...adminConfigOf(values),
    replicaUrl: values.DATABASE_REPLICA_URL ?? null,
    host: values.HOST,
    port: values.PORT,
    roles: values.ROLES,
    trustedProxies: values.TRUST_PROXY,
    rateLimits: Object.freeze({
      keyMinute: values.RATE_LIMIT_KEY_MINUTE,
      keyHour: values.RATE_LIMIT_KEY_HOUR,
      ipMinute: values.RATE_LIMIT_IP_MINUTE,
    }),
    secretsKey: values.SECRETS_KEY ?? null,
    webhookAllowNets: values.WEBHOOK_ALLOW_NETS,
    startupWaitSeconds: values.STARTUP_WAIT_SECONDS,
    webhookMinuteMs: values.WEBHOOK_MINUTE_MS,
    eventRetentionDays: values.EVENT_RETENTION_DAYS,
    consoleTiles: values.CONSOLE_TILES ?? null,
    traces: tracesOf(values),
    buildCommit: values.BUILD_COMMIT ?? null,
  });
}

function tracesOf(values: CleanedEnv<typeof VARIABLES>): TraceConfig | null {
  const endpoint = values.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return null;
  return {
    endpoint,
    headers: values.OTEL_EXPORTER_OTLP_HEADERS,
    serviceName: values.OTEL_SERVICE_NAME,
    rule: samplingRule(values.OTEL_TRACES_SAMPLER, values.OTEL_TRACES_SAMPLER_ARG),
  };
}

/** The first characters of a file; null where it cannot be read. */
function startOf(path: string, chars: number): string | null {
  try {
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(chars);
      return bytes.toString('latin1', 0, readSync(file, bytes));
    } finally {
      closeSync(file);
    }
  } catch {
    return null; // the caller says so
  }
}

function entriesOf(list: string): string[] {
  return list.split(',').map((entry) => entry.trim());
}

function invalid(rule: string, value: string): EnvError {
  return new EnvError(`${rule} (it is ${JSON.stringify(value.slice(0, SHOWN_MAX_CHARS))})`);
}
