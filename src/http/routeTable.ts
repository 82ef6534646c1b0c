import { invariant } from '../lib/invariant.ts';
import { STRICT } from './parameters.ts';
import type { ApiVersion, Route } from './route.ts';

/** A route under the prefix of one version. */
export interface MountedRoute {
  readonly version: ApiVersion;
  readonly route: Route;
  /** The query parameters that it reads; null where unknown ones are ignored. */
  readonly known: ReadonlySet<string> | null;
}

/** All routes of one path of a version. */
export interface RoutePath {
  /** The path with its prefix, such as `/api/v3/devices/:imei`. */
  readonly pattern: string;
  /** A route that answers GET answers HEAD too. */
  readonly byMethod: ReadonlyMap<string, MountedRoute>;
  /** The methods in the order of Allow. */
  readonly allowed: readonly string[];
  /** What is variable in the path: one segment, or all that is left. `from` counts characters after the prefix and its slash. */
  readonly parameter: { readonly name: string; readonly from: number; readonly isRest: boolean } | null;
}

/** The version that a request target names, and the path below it. */
export interface FoundPath {
  readonly version: ApiVersion;
  /** Null when the version has no such path. */
  readonly path: RoutePath | null;
  readonly target: string;
  /** Where the path below the prefix begins and ends in the target. One slash at its end is not part of it. */
  readonly start: number;
  readonly end: number;
}

interface Node {
  readonly literals: Map<string, Node>;
  /** Below any segment. */
  parameter: Node | null;
  /** The path that takes all that is left, or nothing. */
  rest: RoutePath | null;
  /** The path that ends here. */
  here: RoutePath | null;
}

const PREFIX = '/api/';
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/**
 * Finds the routes of a request target in a tree of path segments. Paths are compared as sent: their case matters, and
 * an escaped letter or slash is none. A literal segment comes before a parameter. An empty segment is an empty
 * parameter where more follows it, because `/devices//location` lacks an IMEI and is not another path.
 */
export class RouteTable {
  readonly #roots: ReadonlyMap<string, { readonly version: ApiVersion; readonly node: Node }>;

  constructor(routes: readonly Route[]) {
    const mounted = routes.flatMap((route) =>
      route.versions.map((version) => ({ version, route, known: knownParameters(version, route) })),
    );
    this.#roots = new Map(
      Array.from(
        Map.groupBy(mounted, ({ version }) => version),
        ([version, own]) => [version, { version, node: treeOf(version, own) }],
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
    const root = this.#roots.get(target.slice(PREFIX.length, prefixEnd));
    if (root === undefined) return null;
    const start = prefixEnd + 1;
    // The prefix and two slashes are not the path of the prefix, so the second slash is kept.
    const end = pathEnd > start + 1 && target.charCodeAt(pathEnd - 1) === SLASH ? pathEnd - 1 : pathEnd;
    const path = end <= start ? root.node.here : findBelow(root.node, target, start, end);
    return { version: root.version, path, target, start, end };
  }
}

const SLASH = 47;

function findBelow(node: Node, target: string, from: number, end: number): RoutePath | null {
  if (from > end) return node.here ?? node.rest;
  const slash = target.indexOf('/', from);
  const segmentEnd = slash === -1 || slash > end ? end : slash;
  const literal = node.literals.get(target.slice(from, segmentEnd));
  const found = literal === undefined ? null : findBelow(literal, target, segmentEnd + 1, end);
  if (found !== null) return found;
  if (node.rest !== null) return node.rest;
  if (node.parameter === null || (segmentEnd === from && segmentEnd === end)) return null;
  return findBelow(node.parameter, target, segmentEnd + 1, end);
}

/**
 * The parameters of a path, decoded. A segment that does not decode is a text that no parameter takes. All that is left
 * of a path is decoded as a whole, so a slash in it may be plain or encoded. Throws URIError when that does not decode.
 */
export function paramsOf({ path, target, start, end }: FoundPath): Readonly<Record<string, string>> {
  if (path?.parameter === null || path?.parameter === undefined) return NO_PARAMS;
  const { name, from, isRest } = path.parameter;
  const at = start + from;
  if (isRest) return { [name]: decodeURIComponent(target.slice(at, Math.max(at, end))) };
  const slash = target.indexOf('/', at);
  const text = target.slice(at, slash === -1 || slash > end ? end : slash);
  return text === '' ? NO_PARAMS : { [name]: text.includes('%') ? decodedSegment(text) : text };
}

function decodedSegment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '\0'; // decodeURIComponent throws nothing but URIError
  }
}

function treeOf(version: ApiVersion, routes: readonly MountedRoute[]): Node {
  const root = newNode();
  for (const [path, atPath] of Map.groupBy(routes, ({ route }) => route.path)) {
    const segments = path === '/' ? [] : path.slice(1).split('/');
    let node = root;
    for (const segment of segments) node = childOf(node, segment);
    const entry = pathOf(version, path, atPath);
    if (entry.parameter?.isRest === true) node.rest = entry;
    else node.here = entry;
  }
  return root;
}

function newNode(): Node {
  return { literals: new Map(), parameter: null, rest: null, here: null };
}

function childOf(node: Node, segment: string): Node {
  if (segment.startsWith('*')) return node;
  if (segment.startsWith(':')) {
    node.parameter ??= newNode();
    return node.parameter;
  }
  const child = node.literals.get(segment) ?? newNode();
  node.literals.set(segment, child);
  return child;
}

function pathOf(version: ApiVersion, path: string, routes: readonly MountedRoute[]): RoutePath {
  const [found, ...others] = path.matchAll(/([:*])(\w+)/g);
  invariant(others.length === 0, `${path} has one parameter at most`);
  const [, kind, name = ''] = found ?? [];
  const byMethod = new Map(routes.map((mounted) => [mounted.route.method as string, mounted]));
  const read = byMethod.get('GET');
  if (read !== undefined) byMethod.set('HEAD', read);
  return {
    pattern: `${PREFIX}${version}${path}`,
    byMethod,
    allowed: routes.flatMap(({ route }) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method])),
    parameter: found === undefined ? null : { name, from: found.index - 1, isRest: kind === '*' },
  };
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
