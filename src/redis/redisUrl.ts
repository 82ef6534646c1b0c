import { readFileSync } from 'node:fs';
import type { RedisOptions as AllOptions } from 'ioredis';
import { fail, ok, type Result } from '../lib/result.ts';

type RedisOptions = Omit<AllOptions, 'replyMapping'>;

export interface RedisUrl {
  /** What the client is told beside the URL, or instead of one that names sentinels. Holds passwords. */
  readonly options: RedisOptions;
  /** Null: the options name sentinels, or `nodes` are those of a cluster. */
  readonly url: string | null;
  /** Some nodes of a cluster, which know all; empty: it is none. */
  readonly nodes: readonly RedisAddress[];
  /** Where it is, without passwords: for the log. */
  readonly name: string;
  /** Files with certificates and a key. */
  readonly files: readonly { readonly parameter: string; readonly path: string }[];
}

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** Parameters that name files, as options of redis-cli do, with what TLS calls their content. */
const FILES = { cacert: 'ca', cert: 'cert', key: 'key' } as const;
const LOGIN_PARAMETERS = ['username', 'password'];
const SENTINEL_PARAMETERS = [...LOGIN_PARAMETERS, 'sentinel_username', 'sentinel_password'];
const HOSTS_MAX = 10;
const SENTINEL_PORT = 26_379;
const REDIS_PORT = 6_379;

/**
 * Reads a URL of Redis: redis[s]://user:word@host:6379/0, or that of a master that sentinels know by name:
 * redis[s]+sentinel://name@host1:26379,host2:26379/0?password=word, or that of a Redis Cluster:
 * redis[s]+cluster://host1:6379,host2:6379?password=word. The optional s stands for TLS. An error completes a sentence
 * that begins with the name of the variable, and never repeats a part of the URL, which may hold a password.
 */
export function parseRedisUrl(text: string): Result<RedisUrl, string[]> {
  const parts = SEVERAL_HOSTS.exec(text)?.groups as unknown as Parts | undefined;
  if (parts) return parts.kind === 'sentinel' ? parseSentinels(parts) : parseCluster(parts);
  const url = URL.parse(text);
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol))
    return fail([
      'must be a URL that starts with redis:// or rediss://, or with +sentinel or +cluster before its ://',
    ]);
  const files = filesOf(url.searchParams);
  if (files.length > 0 && url.protocol === 'redis:') return fail([NEEDS_TLS]);
  return ok({ options: files.length > 0 ? { tls: {} } : {}, url: text, nodes: [], name: url.host, files });
}

/** The options with the certificates and the key that they name. Throws when a file cannot be read. */
export function readTlsFiles({ options, files }: RedisUrl): RedisOptions {
  if (files.length === 0) return options;
  const contents = files.map(({ parameter, path }) => [
    FILES[parameter as keyof typeof FILES],
    readFileSync(path, 'utf8'),
  ]);
  const tls = Object.fromEntries(contents);
  return { ...options, tls, ...(options.sentinelTLS && { sentinelTLS: tls }) };
}

const NEEDS_TLS = `must start with rediss where it has the parameters ${Object.keys(FILES).join(', ')}`;

interface Parts {
  readonly tls: string;
  readonly kind: 'sentinel' | 'cluster';
  readonly authority: string;
  readonly db: string | undefined;
  readonly query: string | undefined;
}

const SEVERAL_HOSTS =
  /^redis(?<tls>s?)\+(?<kind>sentinel|cluster):\/\/(?<authority>[^/?#]*)(?:\/(?<db>[^?#]*))?(?:\?(?<query>.*))?$/s;
/** What Sentinel allows. */
const MASTER_NAME = /^[A-Za-z0-9._-]+$/;

function parseSentinels(parts: Parts): Result<RedisUrl, string[]> {
  const { tls, authority, db = '' } = parts;
  const nameEnd = authority.lastIndexOf('@');
  const name = authority.slice(0, Math.max(0, nameEnd));
  const list = authority.slice(nameEnd + 1);
  const sentinels = parseHosts(list, 'sentinel', SENTINEL_PORT);
  const { parameters, files, errors: others } = parseQuery(parts, SENTINEL_PARAMETERS);
  const errors = [...sentinels.errors];
  if (!MASTER_NAME.test(name))
    errors.push('must name the master before its @, and have a password in the parameter password');
  if (!/^[0-9]{0,4}$/.test(db)) errors.push('must have the number of a database after its /, or nothing');
  errors.push(...others);
  if (errors.length > 0) return fail(errors);
  return ok({
    url: null,
    nodes: [],
    name: `${name}@${list}`,
    files,
    options: {
      name,
      sentinels: sentinels.addresses,
      db: Number(db),
      username: parameters.get('username') || undefined,
      password: parameters.get('password') || undefined,
      sentinelUsername: parameters.get('sentinel_username') || undefined,
      sentinelPassword: parameters.get('sentinel_password') || undefined,
      ...(tls !== '' && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
    },
  });
}

function parseCluster(parts: Parts): Result<RedisUrl, string[]> {
  const { tls, authority, db = '' } = parts;
  const nodes = parseHosts(authority, 'node', REDIS_PORT);
  const { parameters, files, errors: others } = parseQuery(parts, LOGIN_PARAMETERS);
  const errors = [...nodes.errors];
  if (authority.includes('@'))
    errors.push('must have a user and a password in the parameters username and password');
  if (!['', '0'].includes(db)) errors.push('must have nothing after its /, since a cluster has one database');
  errors.push(...others);
  if (errors.length > 0) return fail(errors);
  return ok({
    url: null,
    nodes: nodes.addresses,
    name: authority,
    files,
    options: {
      username: parameters.get('username') || undefined,
      password: parameters.get('password') || undefined,
      ...(tls !== '' && { tls: {} }),
    },
  });
}

/** Of host[:port], separated by commas. `what`: what they are called in errors. */
function parseHosts(
  list: string,
  what: string,
  port: number,
): { addresses: RedisAddress[]; errors: string[] } {
  const urls = list.split(',').map((host) => URL.parse(`redis://${host}`));
  const errors = urls.flatMap((url, n) =>
    url?.hostname ? [] : [`has a ${what} (number ${n + 1}) that is not of the form name:port`],
  );
  if (urls.length > HOSTS_MAX) errors.push(`must have at most ${HOSTS_MAX} ${what}s`);
  const addresses = urls.map((url) => ({
    host: (url?.hostname ?? '').replace(/^\[|\]$/g, ''),
    port: Number(url?.port || port),
  }));
  return { addresses, errors };
}

/** `known`: the parameters that are allowed beside those of files. */
function parseQuery({ tls, query }: Parts, known: readonly string[]) {
  const parameters = new URLSearchParams(query);
  const files = filesOf(parameters);
  const all = [...known, ...Object.keys(FILES)];
  const errors: string[] = [];
  if ([...parameters.keys()].some((parameter) => !all.includes(parameter)))
    errors.push(`must have no parameters but ${all.join(', ')}`);
  if (files.length > 0 && tls === '') errors.push(NEEDS_TLS);
  return { parameters, files, errors };
}

function filesOf(parameters: URLSearchParams): { parameter: string; path: string }[] {
  return Object.keys(FILES).flatMap((parameter) => {
    const path = parameters.get(parameter);
    return path ? [{ parameter, path }] : [];
  });
}
