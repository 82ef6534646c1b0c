import { invariant } from '../lib/errors.ts';
import { STRICT } from './parameters.ts';
import type { ApiVersion, Route } from './route.ts';

const PREFIX = '/api/';
const SLASH = 47;
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});
/** In place of what follows a parameter that takes all that is left. */
const REST = '*';

/**
 * Finds the routes of a request target. Paths are compared as sent: their case matters, and an escaped letter or slash
 * is none. A literal segment comes before a parameter. An empty segment is an empty parameter where more follows it,
 * because `/devices//location` lacks an IMEI and is not another path.
 */
export class RouteTable {
  readonly #versions: ReadonlyMap<string, VersionPaths>;

  constructor(routes: readonly Route[]) {
    const mounted = routes.flatMap((route) =>
      route.versions.map((version) => ({ version, route, known: knownParameters(version, route) })),
    );
    this.#versions = new Map(
      Array.from(
        Map.groupBy(mounted, ({ version }) => version),
        ([version, own]) => [version, pathsOf(version, own)],
      ),
    );
  }

  /** Null for a target outside of the API. */
  find(target: string): FoundPath | null {
    if (!target.startsWith(PREFIX)) return null;
    const mark = target.indexOf('?', PREFIX.length);
    const pathEnd = mark === -1 ? target.length : mark;
    const slash = target.indexOf('/', PREFIX.length);
    const prefixEnd = slash === -1 || slash > pathEnd ? pathEnd : slash;
    const paths = this.#versions.get(target.slice(PREFIX.length, prefixEnd));
    if (paths === undefined) return null;
    const start = prefixEnd + 1;
    // The prefix and two slashes are not the path of the prefix, so the second slash is kept.
    const end = pathEnd > start + 1 && target.charCodeAt(pathEnd - 1) === SLASH ? pathEnd - 1 : pathEnd;
    const text = start < end ? target.slice(start, end) : '';
    const path = paths.literal.get(text) ?? variablePath(paths, text);
    return path === null ? pathOfSeveral(paths, text) : { version: paths.version, path, text };
  }
}

/** A route under the prefix of one version. */
export interface MountedRoute {
  readonly version: ApiVersion;
  readonly route: Route;
  /** The query parameters that it reads; null where unknown ones are ignored. */
  readonly known: ReadonlySet<string> | null;
}

/** All routes of one path of a version. */
interface RoutePath {
  /** The path with its prefix, such as `/api/v3/devices/:imei`. */
  readonly pattern: string;
  /** A route that answers GET answers HEAD too. */
  readonly byMethod: ReadonlyMap<string, MountedRoute>;
  /** The methods in the order of Allow. */
  readonly allowed: readonly string[];
  /** What is variable: a segment, or all that is left. `head` and `tail` are what comes before and after it. */
  readonly parameter: {
    readonly name: string;
    readonly isRest: boolean;
    readonly head: string;
    readonly tail: string;
  } | null;
  /**
   * For a path with several parameters, which has no `parameter`: the text before them, and the function that splits the
   * rest.
   */
  readonly several: { readonly head: string; readonly whole: RegExp } | null;
}

/** The version that a request target names, and the path below it. */
export interface FoundPath {
  readonly version: ApiVersion;
  /** Null when the version has no such path. */
  readonly path: RoutePath | null;
  /** What follows the prefix and its slash. One slash at its end is not part of it. */
  readonly text: string;
  /** Several parameters, as they were sent. */
  readonly parts?: Readonly<Record<string, string>>;
}

/** The paths of a version. */
interface VersionPaths {
  readonly version: ApiVersion;
  readonly literal: ReadonlyMap<string, RoutePath>;
  /** Those with a parameter by what comes before and after it, the longest head first. */
  readonly variable: readonly (readonly [head: string, byTail: ReadonlyMap<string, RoutePath>])[];
  /** Those with several parameters. */
  readonly several: readonly RoutePath[];
}

function variablePath({ variable }: VersionPaths, text: string): RoutePath | null {
  for (const [head, byTail] of variable) {
    if (!text.startsWith(head)) continue;
    const slash = text.indexOf('/', head.length);
    const tail = slash === -1 ? '' : text.slice(slash);
    const path = tail === '' && text.length === head.length ? undefined : byTail.get(tail);
    const found = path ?? byTail.get(REST);
    if (found !== undefined) return found;
  }
  return null;
}

/** Its path is null when there is none. */
function pathOfSeveral({ version, several }: VersionPaths, text: string): FoundPath {
  for (const path of several) {
    if (path.several === null || !text.startsWith(path.several.head)) continue;
    const parts = path.several.whole.exec(text)?.groups;
    if (parts !== undefined) return { version, path, text, parts };
  }
  return { version, path: null, text };
}

/**
 * The parameters of a path, decoded. A segment that does not decode is a text that no parameter takes. All that is left
 * of a path is decoded as a whole, so a slash in it may be plain or encoded. Throws URIError when that does not decode.
 */
export function paramsOf({ path, text, parts }: FoundPath): Readonly<Record<string, string>> {
  if (path?.parameter === null || path?.parameter === undefined) return decodedParts(parts);
  const { name, head, tail, isRest } = path.parameter;
  if (isRest) return { [name]: decodeURIComponent(text.slice(head.length)) };
  const segment = text.slice(head.length, text.length - tail.length);
  return segment === '' ? NO_PARAMS : { [name]: decodedSegment(segment) };
}

function decodedParts(parts: FoundPath['parts']): Readonly<Record<string, string>> {
  if (parts === undefined) return NO_PARAMS;
  const decoded: Record<string, string> = {};
  for (const name in parts) decoded[name] = decodedSegment(parts[name] as string);
  return decoded;
}

function decodedSegment(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return '\0'; // decodeURIComponent throws nothing but URIError
  }
}

function pathsOf(version: ApiVersion, routes: readonly MountedRoute[]): VersionPaths {
  const literal = new Map<string, RoutePath>();
  const variable = new Map<string, Map<string, RoutePath>>();
  const several: RoutePath[] = [];
  for (const [text, atPath] of Map.groupBy(routes, ({ route }) => route.path)) {
    const path = pathOf(version, text, atPath);
    if (path.several !== null) {
      several.push(path);
      continue;
    }
    if (path.parameter === null) {
      literal.set(text.slice(1), path);
      continue;
    }
    const { head, tail, isRest } = path.parameter;
    const byTail = variable.get(head) ?? new Map<string, RoutePath>();
    variable.set(head, byTail.set(isRest ? REST : tail, path));
    if (isRest) literal.set(head.slice(0, -1), path); // nothing is left
  }
  return { version, literal, variable: [...variable].sort(([a], [b]) => b.length - a.length), several };
}

function pathOf(version: ApiVersion, path: string, routes: readonly MountedRoute[]): RoutePath {
  const [found, ...others] = path.matchAll(/([:*])(\w+)/g);
  const isSingle = found !== undefined && others.length === 0;
  const [all = '', kind, name = ''] = found ?? [];
  const byMethod = new Map(routes.map((mounted) => [mounted.route.method as string, mounted]));
  const read = byMethod.get('GET');
  if (read !== undefined) byMethod.set('HEAD', read);
  return {
    pattern: `${PREFIX}${version}${path}`,
    byMethod,
    allowed: routes.flatMap(({ route }) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method])),
    parameter: isSingle
      ? {
          name,
          isRest: kind === REST,
          head: path.slice(1, found.index),
          tail: path.slice(found.index + all.length),
        }
      : null,
    several: others.length === 0 ? null : severalOf(path.slice(1)),
  };
}

/** "tiles/:x/:y.mvt" as an expression that names its parameters; each is a part of a segment. */
function severalOf(path: string): NonNullable<RoutePath['several']> {
  invariant(!path.includes(REST), `${path} has several parameters, so each is a part of a segment`);
  const whole = new RegExp(`^${path.replaceAll('.', '\\.').replace(/:(\w+)/g, '(?<$1>[^/]*)')}$`);
  return { head: path.slice(0, path.indexOf(':')), whole };
}

/**
 * The names that a route reads from its query; null where unknown ones are ignored, which is everywhere but on v3 and on
 * the routes of v3 that v1 has for the application.
 */
export function knownParameters(version: ApiVersion, route: Route): ReadonlySet<string> | null {
  if ((version !== 'v3' && version !== 'v1') || !('describe' in route)) return null;
  const named = (route.describe.parameters ?? []).filter((parameter) => parameter.in === 'query');
  return new Set([STRICT.name, ...named.map(({ name }) => name)]);
}
