import { fail, ok, type Result } from '../lib/result.ts';

/** What the server of a connection must be, as libpq defines it for its parameter `target_session_attrs`. */
export type Target = 'primary' | 'read-write' | 'standby';

export interface PostgresUrl {
  /** In the order in which they are named, at least one. */
  readonly hosts: readonly PostgresHost[];
  /** Null: a connection takes the only host as it is. */
  readonly target: Target | null;
  /** Files that connections read: certificates and a key. */
  readonly files: readonly { readonly parameter: string; readonly path: string }[];
}

export interface PostgresHost {
  /** Host and port, without the password: for the log. */
  readonly name: string;
  /** Of this host alone. */
  readonly url: string;
}

/** Which servers a URL may ask for, by the value of its parameter; the first is the default where there is a choice. */
interface Targets {
  readonly byValue: ReadonlyMap<string | null, Target>;
  readonly because: string;
}

const WRITABLE: Targets = {
  byValue: new Map<string, Target>([
    ['primary', 'primary'],
    ['read-write', 'read-write'],
  ]),
  because: 'since the service writes',
};
/** Both mean the same here: reads go to the primary whenever no standby can be reached. */
const STANDBYS: Targets = {
  byValue: new Map<string, Target>([
    ['standby', 'standby'],
    ['prefer-standby', 'standby'],
  ]),
  because: 'since it is to be a replica',
};
const FILES = ['sslrootcert', 'sslcert', 'sslkey'];
const HOSTS_MAX = 10;
const DEFAULT_PORT = '5432';

/**
 * Reads a URL of Postgres, which may name several hosts, as libpq does: postgres://user:word@host1:5432,host2/database.
 * Several hosts are those of one primary and its replicas, and connections are made to the primary. The errors complete a
 * line that begins with the name of the variable. They repeat nothing of the URL, since a part of a password can look
 * like a host.
 */
export function parsePostgresUrl(text: string): Result<PostgresUrl, string[]> {
  return parseUrl(text, WRITABLE, (isOne) => !isOne);
}

/** The same for hosts of which each is a replica, also where there is only one. */
export function parseReplicaUrl(text: string): Result<PostgresUrl, string[]> {
  return parseUrl(text, STANDBYS, () => true);
}

/** `needsTarget`: whether a server must be one of the targets where the URL does not say so. */
function parseUrl(
  text: string,
  { byValue, because }: Targets,
  needsTarget: (isOne: boolean) => boolean,
): Result<PostgresUrl, string[]> {
  const { start = '', user = '', list = '', rest = '' } = PARTS.exec(text)?.groups ?? {};
  const isOne = !list.includes(',');
  const urls = isOne ? [text] : list.split(',').map((host) => `${start}${user}${host}${rest}`);
  const parsed = urls.map((url) => URL.parse(url));
  const [first] = parsed;
  if (start === '' || (isOne && !first))
    return fail(['must be a URL that starts with postgres:// or postgresql://']);
  const query = new URLSearchParams(rest.slice(rest.indexOf('?')));
  const errors = isOne ? [] : errorsOfSeveral(parsed, query);
  const asked = query.get(TARGET);
  const isChecked = needsTarget(isOne);
  if (isChecked && asked !== null && !byValue.has(asked))
    errors.push(`must have ${[...byValue.keys()].join(' or ')} for ${TARGET}, ${because}`);
  if (errors.length > 0) return fail(errors);
  const [usual = null] = isChecked ? byValue.values() : [];
  const target = byValue.get(asked) ?? usual;
  return ok({
    hosts: parsed.map((url, n) => ({ name: nameOf(url), url: urls[n] as string })),
    target,
    files: FILES.flatMap((parameter) => {
      const path = query.get(parameter);
      return path ? [{ parameter, path }] : [];
    }),
  });
}

const TARGET = 'target_session_attrs';
/** The last @ before the path ends the user and the password. */
const PARTS = /^(?<start>postgres(?:ql)?:\/\/)(?<user>[^/?#]*@)?(?<list>[^/?#]*)(?<rest>.*)$/s;

function errorsOfSeveral(urls: readonly (URL | null)[], query: URLSearchParams): string[] {
  const errors = urls.flatMap((url, n) =>
    url === null || url.hostname === ''
      ? [`has a host (number ${n + 1}) that is not of the form name:port`]
      : [],
  );
  if (urls.length > HOSTS_MAX) errors.push(`must have at most ${HOSTS_MAX} hosts`);
  if (query.has('host') || query.has('port'))
    errors.push('must name several hosts before its path, not in the parameters host and port');
  return errors;
}

function nameOf(url: URL | null): string {
  return url === null ? '' : `${url.hostname}:${url.port || DEFAULT_PORT}`;
}
