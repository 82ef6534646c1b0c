import { CidrSet, parseCidrs } from './access/cidrSet.ts';
import { fail, ok, type Result } from './base/result.ts';
import { EnvReader } from './envReader.ts';

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
  readonly logLevel: LogLevel;
}

/** What the administrative commands need to know of the environment. */
export type AdminConfig = Pick<
  Config,
  'databaseUrl' | 'redisUrl' | 'dataDir' | 'logLevel' | 'ingestHost' | 'ingestPort' | 'ingestTokens'
>;

export type Env = Readonly<Record<string, string | undefined>>;

const ROLES: readonly Role[] = ['api', 'ingest', 'delivery'];
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const PORT = { fallback: 3000, min: 0, max: 65_535 };
const INGEST_PORT = { fallback: 3001, min: 0, max: 65_535 };
const MAX_CALLS = 1_000_000_000;
const MINUTE_MS = { fallback: 60_000, min: 1, max: 86_400_000 };
const SECRETS_KEY_BYTES = 32;
const INGEST_TOKEN_MIN = 16;

/**
 * Reads every variable of the service. The error lists all problems, one line each, and says what to do; it never
 * repeats the value of a secret or of a URL, which may carry a password. An empty variable counts as not set.
 */
export function readConfig(env: Env): Result<Config, string[]> {
  const reader = new EnvReader(env);
  const admin = readAdmin(reader);
  const needed = reader.optional('DATABASE_URL') === null ? null : 'with DATABASE_URL';
  const config: Config = {
    ...admin,
    host: reader.text('HOST', '127.0.0.1'),
    port: reader.integer('PORT', PORT),
    ingestTokens:
      needed === null ? admin.ingestTokens : reader.required('INGEST_TOKEN', admin.ingestTokens, needed),
    roles: readRoles(reader),
    trustedProxies: readCidrs(reader, 'TRUST_PROXY'),
    rateLimits: Object.freeze({
      keyMinute: reader.integer('RATE_LIMIT_KEY_MINUTE', { fallback: 120, min: 0, max: MAX_CALLS }),
      keyHour: reader.integer('RATE_LIMIT_KEY_HOUR', { fallback: 1000, min: 0, max: MAX_CALLS }),
      ipMinute: reader.integer('RATE_LIMIT_IP_MINUTE', { fallback: 120, min: 0, max: MAX_CALLS }),
    }),
    secretsKey: readSecretsKey(reader, needed),
    webhookAllowNets: readCidrs(reader, 'WEBHOOK_ALLOW_NETS'),
    webhookMinuteMs: reader.integer('WEBHOOK_MINUTE_MS', MINUTE_MS),
  };
  checkPorts(reader, config);
  return reader.problems.length > 0 ? fail(reader.problems) : ok(Object.freeze(config));
}

/** Reads only the variables that the commands use; the same rules and messages as `readConfig`. */
export function readAdminConfig(env: Env): Result<AdminConfig, string[]> {
  const reader = new EnvReader(env);
  const config = readAdmin(reader);
  return reader.problems.length > 0 ? fail(reader.problems) : ok(Object.freeze(config));
}

function readAdmin(reader: EnvReader): AdminConfig {
  return {
    databaseUrl: reader.url('DATABASE_URL', ['postgres:', 'postgresql:']),
    redisUrl: reader.url('REDIS_URL', ['redis:', 'rediss:']),
    dataDir: reader.text('DATA_DIR', '.data'),
    logLevel: reader.oneOf('LOG_LEVEL', LOG_LEVELS, 'info'),
    ingestHost: reader.text('INGEST_HOST', '127.0.0.1'),
    ingestPort: reader.integer('INGEST_PORT', INGEST_PORT),
    ingestTokens: readIngestTokens(reader),
  };
}

/** A token travels in a header, or in a URL whose owner may be anywhere: no blanks, and too long to be guessed. */
function readIngestTokens(reader: EnvReader): readonly string[] | null {
  if (reader.optional('INGEST_TOKEN') === null) return null;
  const tokens = reader.list('INGEST_TOKEN', []);
  if (!tokens.every((token) => /^[\x21-\x7e]*$/.test(token))) {
    reader.problem(
      'INGEST_TOKEN',
      'must be printable ASCII characters without blanks; a comma separates tokens',
    );
  }
  if (tokens.some((token) => token.length < INGEST_TOKEN_MIN)) {
    const rule = `must have at least ${INGEST_TOKEN_MIN} characters, each token of it; make one: openssl rand -hex 16`;
    reader.problem('INGEST_TOKEN', rule);
  }
  return Object.freeze(tokens);
}

function readSecretsKey(reader: EnvReader, needed: string | null): Buffer | null {
  const text = reader.optional('SECRETS_KEY');
  if (text === null) {
    if (needed !== null) reader.required('SECRETS_KEY', null, `${needed}; make one: openssl rand -base64 32`);
    return null;
  }
  const key = Buffer.from(text, 'base64');
  const canonical = key.toString('base64').replace(/={1,2}$/, '') === text.replace(/={1,2}$/, '');
  if (key.length !== SECRETS_KEY_BYTES || !canonical) {
    reader.problem('SECRETS_KEY', 'must be 32 bytes in base64; make one: openssl rand -base64 32');
  }
  return key;
}

function readRoles(reader: EnvReader): ReadonlySet<Role> {
  const names = reader.list('ROLES', ROLES);
  const roles = ROLES.filter((role) => names.includes(role));
  const known = names.every((name) => roles.some((role) => role === name));
  if (!known || roles.length === 0) {
    reader.problem('ROLES', 'must be a comma list of api, ingest and delivery', names.join(','));
  }
  return new Set(roles);
}

function readCidrs(reader: EnvReader, name: string): CidrSet {
  const parsed = parseCidrs(reader.text(name, ''));
  if (parsed.ok) return parsed.value;
  reader.problem(
    name,
    'must be a comma list of addresses and networks such as 10.0.0.0/8',
    parsed.error.join(','),
  );
  return new CidrSet([]);
}

function checkPorts(reader: EnvReader, config: Config): void {
  const clash = config.port !== 0 && config.port === config.ingestPort && config.host === config.ingestHost;
  if (clash && config.roles.has('api')) {
    reader.problem(
      'INGEST_PORT',
      'must differ from PORT: ingest has a listener of its own',
      String(config.port),
    );
  }
}
