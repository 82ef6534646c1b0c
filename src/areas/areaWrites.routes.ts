import { scopeMask } from '../access/scopes.ts';
import { type Answer, errorAnswer, validationAnswer } from '../http/answer.ts';
import { idOf, malformedId } from '../http/id.ts';
import { jsonBody } from '../http/jsonBody.ts';
import { patternOf } from '../http/openapi/schema.ts';
import type { Parameter } from '../http/parameter.ts';
import type { ChangePorts } from '../http/ports.ts';
import { type Call, type RequestBody, type Route, routeFactory } from '../http/route.ts';
import { fail, type Result } from '../lib/result.ts';
import type { AreaDraft } from './areaDraft.ts';
import { AREA_ERRORS } from './areaErrors.ts';
import { areaView } from './areaOperations.ts';
import { CREATE_AREA, DELETE_AREA, PATCH_AREA, UPSERT_AREA } from './areaWriteOperations.ts';
import type { CreateOnce } from './createOnce.ts';
import { IDEMPOTENCY_KEY, isIdempotencyKey, KEY_MISMATCH } from './createOnce.ts';
import { isExternalId } from './externalId.ts';
import { parseDraft } from './parseDraft.ts';
import { patchArea, removeArea, type SavedArea, type SaveOutcome, upsertArea } from './saveArea.ts';

/** What the path of the upsert route answers to a code in another form. */
export const EXTERNAL_ID_MESSAGE = 'an external id has 1 to 100 letters, digits and . _ : / @ # -';

export const IDEMPOTENCY_KEY_HEADER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Repeating the call with the same key and body within 24 hours gives the first answer again instead of another area.',
  schema: { type: 'string', pattern: patternOf(IDEMPOTENCY_KEY) },
  errorMessage: 'an Idempotency-Key has 1 to 200 letters, digits and . _ : -',
} as const satisfies Parameter & { errorMessage: string };

export interface AreaWritePorts extends ChangePorts {
  readonly createOnce: CreateOnce;
}

/** Create, upsert, change and delete an area. Each is acknowledged when it holds on every pod. */
export function areaWriteRoutes(ports: AreaWritePorts): Route[] {
  const write = routeFactory({ scopes: scopeMask('write_areas'), versions: ['v3'] });
  return [
    write('POST', '/areas', CREATE_AREA, (call) => create(ports, call)),
    write('PUT', '/areas/by-external-id/*externalId', UPSERT_AREA, (call) => upsert(ports, call)),
    write('PATCH', '/areas/:id', PATCH_AREA, (call) => patch(ports, call)),
    write('DELETE', '/areas/:id', DELETE_AREA, (call) => remove(ports, call)),
  ];
}

async function create({ createOnce }: AreaWritePorts, call: Call): Promise<Answer> {
  const key = call.header('idempotency-key') ?? null;
  if (key !== null && !isIdempotencyKey(key)) {
    return errorAnswer('BAD_REQUEST', IDEMPOTENCY_KEY_HEADER.errorMessage);
  }
  const body = jsonBody(call.body);
  if (!body.ok) return body.error;
  const draft = parseDraft(body.value);
  if (!draft.ok) return validationAnswer(draft.error);
  const outcome = await createOnce.create(
    call.caller,
    { draft: draft.value, key, body: body.value },
    savedBody,
  );
  switch (outcome.kind) {
    case 'replayed':
      return createdAnswer(outcome.areaId, outcome.body, { 'Idempotent-Replayed': 'true' });
    case 'key_mismatch':
      return validationAnswer([KEY_MISMATCH]);
    case 'external_id_taken':
      return errorAnswer('CONFLICT');
    default:
      return saveAnswer(outcome, {});
  }
}

async function upsert({ writes }: AreaWritePorts, call: Call): Promise<Answer> {
  const externalId = call.params['externalId'] ?? '';
  if (!isExternalId(externalId)) {
    return errorAnswer('BAD_REQUEST', EXTERNAL_ID_MESSAGE);
  }
  const draft = draftOf(call.body);
  if (!draft.ok) return draft.error;
  const outcome = await upsertArea(writes(call.caller.accountId), call.caller, externalId, draft.value);
  return saveAnswer(outcome, { upsert: outcome.kind });
}

async function patch({ writes }: AreaWritePorts, call: Call): Promise<Answer> {
  const id = idOf(call.params);
  if (id === null) return malformedId();
  const draft = draftOf(call.body);
  if (!draft.ok) return draft.error;
  return saveAnswer(await patchArea(writes(call.caller.accountId), call.caller, id, draft.value), {});
}

async function remove({ writes }: AreaWritePorts, call: Call): Promise<Answer> {
  const id = idOf(call.params);
  if (id === null) return malformedId();
  const removed = await removeArea(writes(call.caller.accountId), call.caller, id);
  return removed ? { status: 204, body: null } : errorAnswer('NOT_FOUND');
}

function saveAnswer(outcome: SaveOutcome, meta: Readonly<Record<string, unknown>>): Answer {
  switch (outcome.kind) {
    case 'created':
      return createdAnswer(outcome.area.id, savedBody(outcome, meta), {});
    case 'updated':
      return { status: 200, body: savedBody(outcome, meta) };
    case 'invalid':
      return validationAnswer(outcome.errors);
    case 'external_id_taken':
      return validationAnswer([AREA_ERRORS.externalIdTaken]);
    case 'not_found':
      return errorAnswer('NOT_FOUND');
  }
}

function createdAnswer(id: number, body: string, headers: Readonly<Record<string, string>>): Answer {
  return { status: 201, body, headers: { Location: `/api/v3/areas/${id}`, ...headers } };
}

function savedBody({ area, warnings }: SavedArea, meta: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ data: areaView(area), meta: warnings.length === 0 ? meta : { ...meta, warnings } });
}

function draftOf(body: RequestBody | null): Result<AreaDraft, Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json;
  const draft = parseDraft(json.value);
  return draft.ok ? draft : fail(validationAnswer(draft.error));
}
