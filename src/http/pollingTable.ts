import { invariant } from '../lib/invariant.ts';
import { type MountedRoute, mounted } from './answerRoute.ts';
import type { ApiVersion, Route } from './route.ts';

type PolledVersion = Extract<ApiVersion, 'v2' | 'v3'>;

/** A polling route that a request target names. */
export interface PollingMatch {
  readonly entry: PollingEntry;
  readonly params: Readonly<Record<string, string>>;
}

export interface PollingEntry extends MountedRoute {
  readonly version: PolledVersion;
  /** The route with its prefix, under which it is observed. */
  readonly pattern: string;
}

interface VersionTable {
  /** By paths without a parameter; null where the path belongs to a route that is not polled. */
  readonly exact: Map<string, PollingEntry | null>;
  /** By paths with a parameter as their second segment, which is left out: `devices//location`. */
  readonly byShape: Map<string, { readonly entry: PollingEntry; readonly param: string }>;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});
const PREFIX = '/api/v';

/**
 * Finds the polling route of a GET by its target, in a few lookups. Null whenever it is not sure: for escapes, empty
 * segments, a trailing slash, another prefix. Then the router decides.
 */
export class PollingTable {
  readonly #v2: VersionTable;
  readonly #v3: VersionTable;

  constructor(routes: readonly Route[]) {
    this.#v2 = tableOf('v2', routes);
    this.#v3 = tableOf('v3', routes);
  }

  find(target: string): PollingMatch | null {
    if (!target.startsWith(PREFIX) || target.charCodeAt(7) !== SLASH) return null;
    const digit = target.charCodeAt(6);
    const table = digit === THREE ? this.#v3 : digit === TWO ? this.#v2 : null;
    if (table === null) return null;
    const mark = target.indexOf('?', 8);
    const path = mark === -1 ? target.slice(8) : target.slice(8, mark);
    const known = table.exact.get(path);
    if (known !== undefined) return known === null ? null : { entry: known, params: NO_PARAMS };
    return findByShape(table, path);
  }
}

const SLASH = 47;
const TWO = 50;
const THREE = 51;

function findByShape(table: VersionTable, path: string): PollingMatch | null {
  const first = path.indexOf('/');
  if (first === -1) return null;
  const second = path.indexOf('/', first + 1);
  const end = second === -1 ? path.length : second;
  const value = path.slice(first + 1, end);
  if (!PLAIN.test(value)) return null;
  const found = table.byShape.get(path.slice(0, first + 1) + path.slice(end));
  return found === undefined ? null : { entry: found.entry, params: { [found.param]: value } };
}

/** Needs no decoding and is no empty segment; every id and IMEI that is well formed. */
const PLAIN = /^[A-Za-z0-9]+$/;

function tableOf(version: PolledVersion, routes: readonly Route[]): VersionTable {
  const table: VersionTable = { exact: new Map(), byShape: new Map() };
  const own = routes.filter((route) => route.versions.includes(version));
  for (const route of own) if (!/[:*]/.test(route.path)) table.exact.set(route.path.slice(1), null);
  for (const route of own.filter(({ isPolled }) => isPolled === true)) {
    const { head, param, tail } = partsOf(route);
    const entry = { ...mounted(version, route), version, pattern: `/api/${version}${route.path}` };
    if (param === undefined) table.exact.set(route.path.slice(1), entry);
    else table.byShape.set(`${head}/${tail}`, { entry, param });
  }
  return table;
}

/** `/head`, `/head/tail`, `/head/:param` or `/head/:param/tail`: what `find` knows how to look for. */
function partsOf(route: Route): { head: string; param: string | undefined; tail: string } {
  const isRead = route.method === 'GET' && route.maxBodyBytes === undefined;
  const parts = /^\/([^/:*]+)(?:\/:([^/]+))?(\/[^/:*]+)?$/.exec(route.path);
  invariant(isRead && parts !== null, `${route.method} ${route.path} is polled as it cannot be`);
  const [, head = '', param, tail = ''] = parts;
  return { head, param, tail };
}
