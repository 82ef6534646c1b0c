import type { ShownKey } from '../access/apiKey.ts';
import type { ClientAddress } from '../access/clientAddress.ts';
import type { KeyState } from '../access/keyState.ts';
import { judgeKey, type KeyRefusal } from '../access/refusal.ts';
import { DeadlineExceeded, withDeadline } from '../base/deadline.ts';
import type { Fleet } from '../memory/fleet.ts';
import type { Keyring } from '../memory/keyring.ts';
import type { Gate, GateVerdict, LimitName, StaleWorld } from '../queue/gate.ts';
import { selectKeyState } from '../store/keyStates.ts';
import { isUnavailable, type Sql } from '../store/sql.ts';

/**
 * For this long after memory was last known to hold every write it is taken for the present: writers wait for pods that
 * were seen within LIVE_SECONDS (store/pods). Beyond it (a pod that was stopped, a Postgres that is lost) each call
 * first tries to catch up.
 */
export const FRESH_MS = 3_000;
/** While Postgres is lost, keys are admitted from memory for this long. */
const TRUST_MEMORY_MS = 60_000;
/** A call waits this long for Postgres to confirm what Redis could not. */
const VERIFY_DEADLINE_MS = 2_000;
const LOAD_TRIES = 10;

export type Admission =
  | { readonly kind: 'admitted'; readonly caller: KeyState }
  | { readonly kind: 'refused'; readonly code: KeyRefusal | 'API_KEY_REQUIRED' | 'API_KEY_INVALID' }
  | { readonly kind: 'limited'; readonly limit: LimitName };

export interface AdmitPorts {
  readonly sql: Sql;
  readonly fleet: Fleet;
  readonly keyring: Keyring;
  readonly gate: Gate;
  readonly follower: { catchUp(): Promise<void>; writesLagMs(): number; readonly isSilent: boolean };
  /** Gives Redis back a version that it lost. */
  readonly restoreVersion: (worldId: number, version: number, ticket: string) => Promise<unknown>;
  /** Told of every admitted call of a key. */
  readonly noteUse: (keyId: number, nowMs: number) => void;
}

const KEY_REQUIRED: Admission = { kind: 'refused', code: 'API_KEY_REQUIRED' };
const KEY_INVALID: Admission = { kind: 'refused', code: 'API_KEY_INVALID' };

/**
 * Lets a call in or refuses it, in the fixed order: IP limit, key present, known, not revoked, owner active,
 * allowlist, key limits. A polling call costs at most one round trip to Redis and none to Postgres: the gate counts
 * and vouches in one go that memory holds the newest version of the key and its worlds. Only when it can not, memory
 * catches up with Postgres first. Rejects when that is needed and Postgres cannot be asked.
 */
export class Admittance {
  readonly #ports: AdmitPorts;
  readonly #loading = new Map<string, Promise<KeyState | undefined>>();

  constructor(ports: AdmitPorts) {
    this.#ports = ports;
  }

  admit(shown: ShownKey, client: ClientAddress, nowMs: number): Admission | Promise<Admission> {
    const ip = client.network;
    if (shown.kind !== 'key') {
      return this.#refuseUncounted(ip, nowMs, shown.kind === 'none' ? KEY_REQUIRED : KEY_INVALID);
    }
    const call: PendingCall = { ip, client, nowMs, fingerprint: shown.fingerprint };
    const key = this.#ports.keyring.get(call.fingerprint);
    if (key === undefined) return this.#admitUnknown(call);
    return this.#judge(call, key, ip, null);
  }

  /** A call without a usable key costs its address a count. */
  #refuseUncounted(ip: string, nowMs: number, refusal: Admission): Admission | Promise<Admission> {
    return whenSettled(this.#count(ip, nowMs), (verdict) => (verdict.kind === 'limited' ? verdict : refusal));
  }

  /** The address is counted before Postgres is asked for the key. */
  async #admitUnknown(call: PendingCall): Promise<Admission> {
    const counted = await this.#count(call.ip, call.nowMs);
    if (counted.kind === 'limited') return counted;
    const key = await this.#load(call.fingerprint);
    if (key === undefined) return KEY_INVALID;
    return this.#judge(call, key, null, call.ip);
  }

  #judge(
    call: PendingCall,
    key: KeyState,
    ip: string | null,
    refundIp: string | null,
  ): Admission | Promise<Admission> {
    const isFresh = this.#ports.follower.writesLagMs() <= FRESH_MS;
    const refusal = judgeKey(key, call.client);
    const keyId = isFresh && refusal === null ? key.id : null;
    const { worldIds } = key;
    const versions = this.#versionsOf(worldIds);
    const request = { ip, keyId, refundIp, worldIds, versions, verified: false };
    return whenSettled(this.#ports.gate.admit(request, call.nowMs), (verdict) => {
      if (verdict.kind === 'limited') return verdict;
      if (verdict.kind === 'pass' && isFresh) return this.#settle(call, key, refusal);
      return this.#verify(call, verdict.kind === 'stale' ? verdict.worlds : []);
    });
  }

  #settle({ nowMs }: PendingCall, caller: KeyState, refusal: KeyRefusal | null): Admission {
    if (refusal !== null) return { kind: 'refused', code: refusal };
    this.#ports.noteUse(caller.id, nowMs);
    return { kind: 'admitted', caller };
  }

  /** Brings memory up to date with Postgres and judges again; the address has been counted. */
  async #verify(call: PendingCall, worlds: readonly StaleWorld[]): Promise<Admission> {
    const caughtUp = await this.#catchUp(worlds.some((world) => world.state === 'newer'));
    if (caughtUp) await this.#restore(worlds);
    const key = this.#ports.keyring.get(call.fingerprint) ?? (await this.#load(call.fingerprint));
    if (key === undefined) return KEY_INVALID;
    const refusal = judgeKey(key, call.client);
    const keyId = refusal === null ? key.id : null;
    const { worldIds } = key;
    const versions = this.#versionsOf(worldIds);
    const request = { ip: null, keyId, refundIp: call.ip, worldIds, versions, verified: true };
    const verdict = await this.#ports.gate.admit(request, call.nowMs);
    return verdict.kind === 'limited' ? verdict : this.#settle(call, key, refusal);
  }

  /** False when Postgres is lost but nobody knows of anything newer than memory, so memory may answer. */
  async #catchUp(newerExists: boolean): Promise<boolean> {
    const { follower } = this.#ports;
    try {
      if (follower.isSilent) throw new DeadlineExceeded('Postgres does not answer');
      await withDeadline(follower.catchUp(), VERIFY_DEADLINE_MS, 'reading the change feed');
      return true;
    } catch (error) {
      if (newerExists || !isUnavailable(error) || follower.writesLagMs() > TRUST_MEMORY_MS) throw error;
      return false;
    }
  }

  async #restore(worlds: readonly StaleWorld[]): Promise<void> {
    const { fleet, restoreVersion } = this.#ports;
    for (const world of worlds) {
      if (world.state === 'missing') {
        await restoreVersion(world.worldId, fleet.worldVersion(world.worldId), world.ticket);
      }
    }
  }

  #count(ip: string, nowMs: number): GateVerdict | Promise<GateVerdict> {
    const request = { ip, keyId: null, refundIp: null, worldIds: [], versions: [], verified: true };
    return this.#ports.gate.admit(request, nowMs);
  }

  #versionsOf(worldIds: readonly number[]): number[] {
    return worldIds.map((worldId) => this.#ports.fleet.worldVersion(worldId));
  }

  /** Reads a key once for all calls that wait for it; again when a change may have overtaken the read. */
  #load(fingerprint: string): Promise<KeyState | undefined> {
    let loading = this.#loading.get(fingerprint);
    if (loading === undefined) {
      loading = withDeadline(this.#read(fingerprint), VERIFY_DEADLINE_MS, 'reading a key').finally(() =>
        this.#loading.delete(fingerprint),
      );
      this.#loading.set(fingerprint, loading);
    }
    return loading;
  }

  async #read(fingerprint: string): Promise<KeyState | undefined> {
    const { sql, keyring } = this.#ports;
    for (let attempt = 0; attempt < LOAD_TRIES; attempt++) {
      const epoch = keyring.epoch;
      const key = await selectKeyState(sql, fingerprint);
      if (key === undefined || keyring.put(fingerprint, key, epoch)) return key;
    }
    throw new DeadlineExceeded('keys change faster than one can be read');
  }
}

interface PendingCall {
  readonly ip: string;
  readonly client: ClientAddress;
  readonly nowMs: number;
  readonly fingerprint: string;
}

/** Goes on at once with a value, later with a promise: a single process needs no turn of the event loop. */
function whenSettled<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
