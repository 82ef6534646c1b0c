import { SCOPES, SESSION_ONLY, scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, listAnswer, validationAnswer } from '../http/answer.ts';
import { jsonBody } from '../http/body/jsonBody.ts';
import { idOf, malformedId } from '../http/parameters/id.ts';
import { clampedInt, offsetOf } from '../http/parameters/query.ts';
import type { ChangePorts, ReadPorts } from '../http/ports.ts';
import { type Call, JSON_BODY_BYTES, type Route } from '../http/route.ts';
import { formatIso } from '../lib/isoTime.ts';
import { changeKey, createKey, revokeKey } from './changeKeySettings.ts';
import { KEY_ERRORS, parseKeyChange, parseKeyCreate } from './keyBody.ts';
import { type KeyRecord, selectKeys } from './keySettings.sql.ts';

const LIMIT_MAX = 200;
const LIMIT_DEFAULT = 50;

type KeyPorts = ReadPorts & ChangePorts;

/**
 * The key settings of an account. Any key may read them; changing them takes a session, so that a key that leaked can
 * neither widen itself nor make others. A change is acknowledged when it holds on every pod.
 */
export function v1KeyRoutes(ports: KeyPorts): Route[] {
  const manage = (method: Route['method'], path: string, handle: Route['handle'], takesBody: boolean) =>
    ({
      method,
      path,
      scopes: SESSION_ONLY,
      versions: ['v1'],
      ...(takesBody ? { maxBodyBytes: JSON_BODY_BYTES } : {}),
      handle,
    }) as const satisfies Route;
  return [
    {
      method: 'GET',
      path: '/keys',
      scopes: SESSION_ONLY | scopeMask(...SCOPES),
      versions: ['v1'],
      handle: (call) => list(ports, call),
    },
    manage('POST', '/keys', (call) => create(ports, call), true),
    manage('PATCH', '/keys/:id', (call) => change(ports, call), true),
    manage('POST', '/keys/:id/revoke', (call) => revoke(ports, call), false),
  ];
}

async function list({ reads }: KeyPorts, { caller, query }: Call): Promise<Answer> {
  const page = { limit: clampedInt(query['limit'], 1, LIMIT_MAX, LIMIT_DEFAULT), offset: offsetOf(query) };
  const keys = await selectKeys(reads(caller.accountId), caller.accountId, page);
  return listAnswer(keys.map(keyView), page);
}

async function create({ writes }: KeyPorts, { caller, body }: Call): Promise<Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const settings = parseKeyCreate(json.value);
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

function found(key: KeyRecord | undefined): Answer {
  return key === undefined ? errorAnswer('NOT_FOUND') : dataAnswer(keyView(key));
}

/** A key on the wire; the key itself is added at its creation only. */
function keyView(key: KeyRecord) {
  return {
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    scopes: key.scopes,
    allowlist: key.allowlist,
    created_at: formatIso(key.createdAtMs),
    last_used_at: key.lastUsedAtMs === null ? null : formatIso(key.lastUsedAtMs),
    revoked_at: key.revokedAtMs === null ? null : formatIso(key.revokedAtMs),
  };
}
