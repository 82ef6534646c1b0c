import { randomBytes } from 'node:crypto';
import { fingerprint } from '../access/credentials.ts';
import { ANYBODY, scopeMask } from '../access/scopes.ts';
import type { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { EXAMPLE_IMEI, EXAMPLE_NOW_MS, EXAMPLE_POINT } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, dataAnswer, errorAnswer, listAnswer, validationAnswer } from '../http/answer.ts';
import { answered, bodyOf, dataBody, type Operation } from '../http/openapi/operation.ts';
import {
  choice,
  envelope,
  ID,
  integer,
  LATITUDE,
  LONGITUDE,
  list,
  nullable,
  number,
  page,
  ref,
  type Schema,
  SPEED_KMH,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import {
  ID_MESSAGE,
  idOf,
  LIST_LIMIT,
  malformedId,
  OFFSET,
  offsetOf,
  readLimit,
} from '../http/parameters.ts';
import { jsonBody } from '../http/requestBody.ts';
import { type Call, type ChangePorts, type ReadPorts, type Route, routeFactory } from '../http/route.ts';
import { DAY_MS, formatIso } from '../lib/time.ts';
import { createShare, deleteShare } from './saveShare.ts';
import { parseShare, SHARE_ERRORS, SHARE_LIMITS, SHOWN_PARTS, type ShareState } from './share.ts';
import type { SharedDevice, SharedFleet } from './sharedFleet.ts';
import type { ShareStreams } from './shareStreams.ts';
import { type ShareRecord, selectShares } from './shares.sql.ts';

const TOKEN_BYTES = 32;

interface SharePorts extends ReadPorts, ChangePorts {
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  readonly shared: SharedFleet;
  readonly shareStreams: ShareStreams;
}

/** Shares of an account: make, list and end them. Keys with groups may not: a share is its account's. */
export function shareRoutes(ports: SharePorts): Route[] {
  const shared = { scopes: scopeMask('manage_shares'), versions: ['v3'] } as const;
  const route = routeFactory({ ...shared, shedAs: 'poll' });
  const bulk = routeFactory({ ...shared, shedAs: 'bulk' });
  const shown = { scopes: ANYBODY, versions: ['share'], shedAs: 'poll' } as const;
  return [
    route('POST', '/shares', CREATE_SHARE, (call) => create(ports, call)),
    bulk('GET', '/shares', LIST_SHARES, async ({ caller: { accountId }, query }) => {
      const asked = { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) };
      const shares = await selectShares(ports.reads(accountId), accountId, asked);
      return listAnswer(shares.map(shareView), asked);
    }),
    route('DELETE', '/shares/:id', DELETE_SHARE, (call) => end(ports, call)),
    {
      ...{ ...shown, method: 'GET', path: '/:token', describe: GET_SHARED },
      handle: (call) => ofToken(ports, call, (share) => sharedAnswer(ports.shared, share)),
    },
    {
      ...{ ...shown, method: 'GET', path: '/:token/stream', describe: STREAM_SHARED },
      handle: (call) => ofToken(ports, call, (share) => streamAnswer(ports.shareStreams, share)),
    },
  ];
}

async function create(ports: SharePorts, { caller, body, nowMs, header }: Call): Promise<Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const draft = parseShare(json.value, nowMs);
  if (!draft.ok) return validationAnswer(draft.error);
  const { imeis, untilAreaId } = draft.value;
  const { worldIds, accountId } = caller;
  const devices = imeis
    .map((imei) => ports.fleet.device(worldIds, imei))
    .filter((each) => each !== undefined);
  if (devices.length < imeis.length) return validationAnswer([SHARE_ERRORS.devicesUnknown]);
  if (untilAreaId !== null && ports.areas.area(worldIds, untilAreaId) === undefined)
    return validationAnswer([SHARE_ERRORS.untilAreaInvalid]);
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const ids = devices.map(({ id }) => id);
  const made = await createShare(ports.writes(accountId), caller, draft.value, ids, fingerprint(token));
  if (made === undefined) return validationAnswer([SHARE_ERRORS.limitReached]);
  const { id, ...view } = shareView(made);
  return {
    ...dataAnswer({ id, url: urlOf(token, header), ...view }),
    status: 201,
    headers: { 'Cache-Control': 'no-store' },
  };
}

/** As the caller has reached the service; a path where it does not say how. */
function urlOf(token: string, header: Call['header']): string {
  const host = header('host');
  const scheme = header('x-forwarded-proto') === 'https' ? 'https' : 'http';
  return host === undefined ? `/s/${token}` : `${scheme}://${host}/s/${token}`;
}

async function end({ writes }: SharePorts, { caller, params }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const isFound = await deleteShare(writes(caller.accountId), caller, id);
  return isFound ? { status: 204, body: null } : errorAnswer('NOT_FOUND');
}

/** Links are secrets: caches and search engines must not keep them. Every answer has a Referrer-Policy. */
const PRIVATE_HEADERS = {
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex',
};

async function ofToken(
  { shared }: SharePorts,
  { params }: Call,
  answer: (share: ShareState) => Answer | Promise<Answer>,
): Promise<Answer> {
  const share = await shared.find(params['token'] ?? '');
  const made =
    typeof share === 'object'
      ? await answer(share)
      : errorAnswer(share === 'ended' ? 'SHARE_ENDED' : 'NOT_FOUND');
  return { ...made, headers: { ...made.headers, ...PRIVATE_HEADERS } };
}

async function sharedAnswer(shared: SharedFleet, share: ShareState): Promise<Answer> {
  return dataAnswer(sharedView(share, await shared.devices(share)));
}

function streamAnswer(streams: ShareStreams, share: ShareState): Answer {
  const body = streams.open(share);
  if (body === null) return errorAnswer('TOO_MANY_REQUESTS', TOO_MANY_READERS);
  return {
    status: 200,
    body,
    headers: { 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' },
  };
}

const TOO_MANY_READERS = 'too many look at this share now; try again later';

function shareView({ created_at, expires_at, ended_at, ...share }: ShareRecord) {
  const { id, name, devices, until_area_id, delay_seconds, hide, show, end_reason } = share;
  return {
    ...{ id, name, devices },
    created_at: formatIso(created_at.getTime()),
    expires_at: formatIso(expires_at.getTime()),
    ended_at: ended_at === null ? null : formatIso(ended_at.getTime()),
    ...{ end_reason, until_area_id, delay_seconds, hide, show },
  };
}

function sharedView(
  { name, expiresAtMs }: Pick<ShareState, 'name' | 'expiresAtMs'>,
  devices: readonly SharedDevice[],
) {
  return { name, expires_at: formatIso(expiresAtMs), devices };
}

const HIDE: Schema = list(
  shapeOf<{ lat: number; lng: number; radius_m: number }>({
    lat: LATITUDE,
    lng: LONGITUDE,
    radius_m: number('Metres.', { maximum: SHARE_LIMITS.hiddenRadiusM }),
  }),
  { maxItems: SHARE_LIMITS.hidden, description: 'Circles within which a vehicle has no place.' },
);
const SHARE = {
  id: ID,
  name: nullable(text('Shown to whoever has the link.')),
  devices: list(text(), { description: 'IMEIs. Those of deleted devices are left out.' }),
  created_at: time(),
  expires_at: time(),
  ended_at: nullable(time('null while it has not been ended before its time.')),
  end_reason: nullable(choice(['deleted', 'arrived'])),
  until_area_id: nullable(ID),
  delay_seconds: integer('Vehicles are shown where they were so long ago.', {
    minimum: 0,
    maximum: SHARE_LIMITS.delaySeconds,
  }),
  hide: HIDE,
  show: list(choice(SHOWN_PARTS)),
};
const FIELD_ERRORS = Object.values(SHARE_ERRORS);

export const SHARE_SCHEMAS = {
  Share: shapeOf<ReturnType<typeof shareView>>(SHARE),
  ShareWithUrl: shapeOf<ReturnType<typeof shareView> & { url: string }>({
    ...SHARE,
    url: text('The link. Its token is shown only here.'),
  }),
  ShareInput: {
    type: 'object',
    required: ['devices', 'expires_at'],
    properties: {
      devices: list(text(), { minItems: 1, maxItems: SHARE_LIMITS.devices }),
      name: nullable(text(undefined, { maxLength: SHARE_LIMITS.nameMaxCodePoints })),
      expires_at: time(`At most ${SHARE_LIMITS.days} days ahead.`),
      until_area_id: nullable(integer('It ends when one of the vehicles enters this area.', { minimum: 1 })),
      delay_seconds: nullable(SHARE.delay_seconds),
      hide: nullable(HIDE),
      show: nullable(
        list(choice(SHOWN_PARTS), { description: 'What is shown beside the place. `["name"]`.' }),
      ),
    },
  },
  ShareFieldError: shapeOf<{ field: string | null; code: string; message: string }>({
    field: nullable(choice([...new Set(FIELD_ERRORS.flatMap(({ field }) => field ?? []))])),
    code: choice([...new Set(FIELD_ERRORS.map(({ code }) => code))]),
    message: text(),
  }),
  SharedFleet: shapeOf<ReturnType<typeof sharedView>>({
    name: nullable(text()),
    expires_at: time(),
    devices: list(
      shapeOf<SharedDevice>(
        {
          id: integer('Counts the vehicles of the share.', { minimum: 1 }),
          name: nullable(text('Where `show` has it.')),
          plate: nullable(text('Where `show` has it.')),
          place: choice(['known', 'private', 'unknown'], 'private: near a place that the owner hides.'),
          location: nullable(
            shapeOf<NonNullable<SharedDevice['location']>>(
              {
                latitude: LATITUDE,
                longitude: LONGITUDE,
                heading: number('Degrees, clockwise from north.', { minimum: 0, maximum: 360 }),
                recorded_at: time(),
                speed_kmh: SPEED_KMH,
              },
              { optional: ['speed_kmh'] },
            ),
          ),
          trail: list(list(list(number(), { minItems: 2, maxItems: 2 })), {
            description: 'The way of the last half hour in parts, as [longitude, latitude].',
          }),
        },
        { optional: ['name', 'plate', 'trail'] },
      ),
    ),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

const EXAMPLE_SHARE = shareView({
  ...{ id: 12, name: 'Your delivery', devices: [EXAMPLE_IMEI] },
  created_at: new Date(EXAMPLE_NOW_MS),
  expires_at: new Date(EXAMPLE_NOW_MS + DAY_MS),
  ...{ ended_at: null, end_reason: null, until_area_id: 41, delay_seconds: 0, hide: [], show: ['name'] },
});

const CREATE_SHARE: Operation = {
  id: 'createShare',
  tag: 'Shares',
  summary: 'Make a link that shows where vehicles are',
  description: `The link needs no login. It ends at \`expires_at\`, when it is deleted, when a shared vehicle enters \`until_area_id\` (the entry of the events), and while its account is inactive; then it is 410 on every pod. Of an account at most ${SHARE_LIMITS.perOwner} have not ended.`,
  body: {
    schema: ref('ShareInput'),
    examples: {
      'until it arrives': {
        devices: [EXAMPLE_IMEI],
        name: EXAMPLE_SHARE.name,
        expires_at: EXAMPLE_SHARE.expires_at,
        until_area_id: EXAMPLE_SHARE.until_area_id,
      },
    },
    fieldError: ref('ShareFieldError'),
    errorExamples: {
      'an unknown device': [SHARE_ERRORS.devicesUnknown],
      'too many': [SHARE_ERRORS.limitReached],
    },
  },
  answers: [
    answered(201, 'The share with its link.', envelope(ref('ShareWithUrl')), {
      created: dataBody({
        url: 'https://fleet.example.com/s/q1ZKzi8tykxOVbJSKkktLlHSUUosScxLTixKUbI',
        ...EXAMPLE_SHARE,
      }),
    }),
  ],
};

const LIST_SHARES: Operation = {
  id: 'listShares',
  tag: 'Shares',
  summary: 'List shares',
  description: 'Those of the account, the newest first, also those that ended in the last 30 days.',
  parameters: [LIST_LIMIT, OFFSET],
  answers: [
    answered(200, 'A page of shares, without their links.', page(ref('Share')), {
      shares: bodyOf(listAnswer([EXAMPLE_SHARE], { limit: LIST_LIMIT.fallback, offset: 0 })),
    }),
  ],
};

const DELETE_SHARE: Operation = {
  id: 'deleteShare',
  tag: 'Shares',
  summary: 'End a share',
  answers: [{ status: 204, description: 'Its link has ended on every pod.' }],
  errors: [['BAD_REQUEST', ID_MESSAGE], 'NOT_FOUND'],
};

const GET_SHARED: Operation = {
  id: 'getShared',
  tag: 'Shares',
  summary: 'Read what a link shows',
  description: 'Without a key: the token of the link is enough.',
  answers: [
    answered(200, 'The vehicles.', envelope(ref('SharedFleet')), {
      'on the way': dataBody(
        sharedView({ name: EXAMPLE_SHARE.name, expiresAtMs: EXAMPLE_NOW_MS + DAY_MS }, [
          {
            ...{ id: 1, name: 'Van 7', place: 'known' },
            location: {
              latitude: EXAMPLE_POINT.lat,
              longitude: EXAMPLE_POINT.lng,
              heading: 214,
              recorded_at: formatIso(EXAMPLE_NOW_MS),
            },
          },
        ]),
      ),
    }),
  ],
  errors: ['NOT_FOUND', 'SHARE_ENDED'],
};

const STREAM_SHARED: Operation = {
  id: 'streamShared',
  tag: 'Shares',
  summary: 'Follow what a link shows',
  description:
    'Server-sent events: `device` with a vehicle as in the answer above, first each of them, then what changes; `{ "id", "removed": true }` for one that the owner has no more; `heartbeat` every 10 seconds; `ended` before the stream ends with the share.',
  answers: [
    {
      status: 200,
      description: 'The stream.',
      contentType: 'text/event-stream',
      schema: text('Messages of server-sent events.'),
    },
  ],
  errors: ['NOT_FOUND', 'SHARE_ENDED'],
};
