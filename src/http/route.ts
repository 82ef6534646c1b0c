import type { ClientAddress } from '../access/clientAddress.ts';
import type { KeyState } from '../access/keyState.ts';
import type { Answer } from './answer.ts';
import type { Operation } from './openapi/operation.ts';
import type { Query } from './query.ts';

/** What follows /api/ in the path: a version, or the management of webhooks, which has none. */
export type ApiVersion = 'v1' | 'v2' | 'v3' | 'webhooks';

/** An admitted request: everything that a route needs to answer it. */
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
}

/** A body, decompressed. */
export interface RequestBody {
  /** A large one in the pieces in which it came: to join them would hold up everybody else. */
  readonly pieces: readonly Buffer[];
  /** False when the Content-Type says that it is something else. */
  readonly isJson: boolean;
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
  /** Below the prefix, with `:name` for a segment and `*name` at the end for all that is left. */
  readonly path: string;
  /** Any one of these permissions opens the route (bit mask). */
  readonly scopes: number;
  readonly versions: readonly ApiVersion[];
  /** How large a body may be; without it none is read. */
  readonly maxBodyBytes?: number;
  /** Asked so often that it is answered before the router is reached (see pollingListener). Only for reads. */
  readonly isPolled?: true;
  /** How long an answer may take at most, where it is more than usual. */
  readonly deadlineMs?: number;
  handle(call: Call): Answer | Promise<Answer>;
}

export const BOTH_VERSIONS: readonly ApiVersion[] = ['v2', 'v3'];
