import type { KeyState } from '../access/credentials.ts';
import type { ClientAddress } from '../access/ipAddress.ts';
import type { WritePorts } from '../changelog/writeWorlds.ts';
import type { JsonError } from '../lib/parseText.ts';
import type { Result } from '../lib/result.ts';
import type { Sql } from '../postgres/sql.ts';
import type { Answer } from './answer.ts';
import type { Operation } from './openapi/operation.ts';
import type { Query } from './parameters.ts';
import type { ShedClass } from './shedding.ts';

/** What follows /api/ in the path: a version, or the management of webhooks or what a link shows, which have none. */
export type ApiVersion = 'v1' | 'v2' | 'v3' | 'webhooks' | 'share';

/** An authorized request: everything that a route needs to answer it. */
export interface Call {
  readonly version: ApiVersion;
  readonly caller: KeyState;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly nowMs: number;
  /** Where the call comes from; on v1. */
  readonly client?: ClientAddress;
  /** Present on routes that take one. */
  readonly body: RequestBody | null;
  /** A header by its lower-case name; several of one name are joined by commas. */
  header(name: string): string | undefined;
  /** True once the caller has hung up. */
  readonly hasLeft?: () => boolean;
  /** Calls `listener` once the call is answered or the caller has hung up. */
  readonly whenLeft?: (listener: () => void) => void;
}

/** A body, decompressed. */
export interface RequestBody {
  /** A large one in several: to join them would hold up everybody else. */
  readonly pieces: readonly Buffer[];
  /** False when the Content-Type does not say so. */
  readonly isJson: boolean;
  /** What it says; null where it does not say that it is JSON, and on routes that take pieces. */
  readonly json: Result<unknown, JsonError> | null;
}

/** One route under a version's prefix: plain functions that know nothing of the server around them. */
export type Route = RouteBase &
  (
    | {
        /** What is offered to integrators is described to them. */
        readonly describe: Operation;
      }
    | { readonly versions: readonly ['v1'] }
  );

interface RouteBase {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /**
   * Below the prefix, with `:name` for a segment and `*name` at the end for all that is left. With several, such as
   * `/tiles/:x/:y.mvt`, each is a part of a segment.
   */
  readonly path: string;
  /** Any one of these permissions opens the route (bit mask). */
  readonly scopes: number;
  /** Keys with groups may call it: it answers nothing that depends on devices which the caller does not see. */
  readonly isOpenToGroups?: true;
  /** Instead of any one, all of them are needed. */
  readonly needsAllScopes?: true;
  readonly versions: readonly ApiVersion[];
  /** When an overloaded pod refuses it. */
  readonly shedAs: ShedClass;
  /** How large a body may be; without it none is read. */
  readonly maxBodyBytes?: number;
  /** The route reads the pieces of the body itself. */
  readonly takesPieces?: true;
  /** A compressed body is an error. */
  readonly takesPlainOnly?: true;
  /** Answered from memory: an answer that comes too late is not the fault of Postgres. */
  readonly isFromMemory?: true;
  /** The route ends its answers in time itself, so a waiting call needs no timer of its own. */
  readonly endsItself?: true;
  /** How long an answer may take at most, where it is more than usual. */
  readonly deadlineMs?: number;
  handle(call: Call): Answer | Promise<Answer>;
}

export const BOTH_VERSIONS: readonly ApiVersion[] = ['v2', 'v3'];

/** How large a JSON body may be on a route that takes one object. */
export const JSON_BODY_BYTES = 1024 * 1024;

/** Makes routes that share a permission and their versions. Those whose description has a body read one. */
export function routeFactory(shared: Pick<Route, 'scopes' | 'versions' | 'shedAs' | 'isOpenToGroups'>) {
  return (method: Route['method'], path: string, describe: Operation, handle: Route['handle']): Route => ({
    ...shared,
    method,
    path,
    ...(describe.body === undefined ? {} : { maxBodyBytes: JSON_BODY_BYTES }),
    describe,
    handle,
  });
}

/** Reads of an account's calls, on its share of the connections, so that nobody else waits for them. */
export interface ReadPorts {
  readonly reads: (accountId: number) => Sql;
}

/** Writes of an account's calls, on its share of the connections. */
export interface ChangePorts {
  readonly writes: (accountId: number) => WritePorts;
}
