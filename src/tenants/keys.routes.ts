import { type KeyRecord, selectKeys } from '../access/keys.sql.ts';
import { SCOPES, SESSION_ONLY, scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, listAnswer, validationAnswer } from '../http/answer.ts';
import { clampedInt, idOf, malformedId, offsetOf } from '../http/parameters.ts';
import { jsonBody } from '../http/requestBody.ts';
import { type Call, type ChangePorts, JSON_BODY_BYTES, type ReadPorts, type Route } from '../http/route.ts';
import { formatIso } from '../lib/time.ts';
import { changeKey, createKey, revokeKey } from './changeKeys.ts';
import { KEY_ERRORS, parseKeyChange, parseKeyCreate } from './keyBody.ts';

const LIMIT_MAX = 200;
const LIMIT_DEFAULT = 50;

type KeyPorts = ReadPorts & ChangePorts;

/**
 * The key settings of an account. Any key may read them, one with groups only its own; changing them takes a session, so
 * that a key that leaked can neither widen itself nor make others. A change is acknowledged when it holds on every pod.
 */
export function v1KeyRoutes(ports: KeyPorts): Route[] {
  const versions = ['v1'] as const;
  const managed = { scopes: SESSION_ONLY, versions, shedAs: 'poll' } as const;
  const withBody = { ...managed, maxBodyBytes: JSON_BODY_BYTES };
  return [
    {
      method: 'GET',
      path: '/keys',
      scopes: SESSION_ONLY | scopeMask(...SCOPES),
      isOpenToGroups: true,
      versions,
      shedAs: 'bulk',
      handle: (call) => list(ports, call),
    },
    { ...withBody, method: 'POST', path: '/keys', handle: (call) => create(ports, call) },
    { ...withBody, method: 'PATCH', path: '/keys/:id', handle: (call) => change(ports, call) },
    { ...managed, method: 'POST', path: '/keys/:id/revoke', handle: (call) => revoke(ports, call) },
  ];
}

async function list({ reads }: KeyPorts, { caller, query }: Call): Promise<Answer> {
  const page = { limit: clampedInt(query['limit'], 1, LIMIT_MAX, LIMIT_DEFAULT), offset: offsetOf(query) };
  // A key with groups is given to others, whom the other keys of the account do not concern.
  const keyId = caller.worldIds.groups === undefined ? null : caller.id;
  const keys = await selectKeys(reads(caller.accountId), caller.accountId, keyId, page);
  return listAnswer(keys.map(keyView), page);
}

async function create({ writes }: KeyPorts, { caller, body, nowMs }: Call): Promise<Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const settings = parseKeyCreate(json.value, nowMs);
  if (!settings.ok) return validationAnswer(settings.error);
  const made = await createKey(writes(caller.accountId), caller, settings.value);
  if (made === undefined) return validationAnswer([KEY_ERRORS.limitReached]);
  const headers = { Location: `/api/v1/keys/${made.record.id}`, 'Cache-Control': 'no-store' };
  return { ...dataAnswer({ ...keyView(made.record), key: made.key }), status: 201, headers };
}

async function change({ writes }: KeyPorts, { caller, params, body }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const settings = parseKeyChange(json.value);
  if (!settings.ok) return validationAnswer(settings.error);
  return found(await changeKey(writes(caller.accountId), caller, id, settings.value));
}

async function revoke({ writes }: KeyPorts, { caller, params }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  return found(await revokeKey(writes(caller.accountId), caller, id));
}

/** Undefined: the owner has no such key. */
function found(key: KeyRecord | undefined): Answer {
  return key === undefined ? errorAnswer('NOT_FOUND') : dataAnswer(keyView(key));
}

/** A key on the wire; the key itself is added at its creation only. */
function keyView({ id, name, prefix, scopes, allowlist, groups, ...times }: KeyRecord) {
  const time = (date: Date | null): string | null => date && formatIso(date.getTime());
  return {
    ...{ id, name, prefix, scopes, allowlist, groups },
    created_at: time(times.created_at),
    last_used_at: time(times.last_used_at),
    revoked_at: time(times.revoked_at),
    expires_at: time(times.expires_at),
  };
}
