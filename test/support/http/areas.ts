import { completeDraft, parseDraft, type ValidArea } from '../../../src/areas/areaDraft.ts';
import { invariant } from '../../../src/lib/errors.ts';
import { type OwnerPod, ownerPod } from '../ownerPod.ts';
import { type PodAddress, type Reply, request } from '../pod.ts';

/** Bodies of areas that are valid as they are, one of each type. */
export const CIRCLE = { name: 'Depot', type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 500 };
export const PLACE = { name: 'Gate', type: 'point', center: { lat: 41.9, lng: 12.5 } };
export const POLYGON = {
  name: 'Yard',
  type: 'polygon',
  points: [
    { lat: 41.9, lng: 12.4 },
    { lat: 41.9, lng: 12.5 },
    { lat: 42, lng: 12.5 },
    { lat: 42, lng: 12.4 },
  ],
};
export const TRACK = {
  name: 'Road',
  type: 'polyline',
  points: [
    { lat: 41.9, lng: 12.4 },
    { lat: 42, lng: 12.5 },
  ],
};
export const BODIES = { circle: CIRCLE, point: PLACE, polygon: POLYGON, polyline: TRACK } as const;

/** The area that a body of POST describes. */
export function validArea(body: unknown): ValidArea {
  const draft = parseDraft(body);
  invariant(draft.ok, 'the body is an object');
  const valid = completeDraft(draft.value);
  invariant(valid.ok, JSON.stringify(valid));
  return valid.value;
}

export interface SendOptions {
  /** An object is sent as JSON; text and bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The area routes as one key sees them. */
export type AreaApi = ReturnType<typeof areaApi>;

/** `key` may be one that is not there yet. */
export function areaApi(pod: PodAddress, key: string | (() => string)) {
  const keyNow = (): string => (typeof key === 'string' ? key : key());
  /** Below /api/v3/areas. */
  const send = (method: string, path: string, { body, headers = {} }: SendOptions = {}): Promise<Reply> => {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array;
    return request(`${pod.api}/api/v3/areas${path}`, {
      method,
      headers: {
        'X-API-Key': keyNow(),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
    });
  };
  const post = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
    send('POST', '', { body, headers });
  return {
    pod,
    get key() {
      return keyNow();
    },
    send,
    post,
    get: (path = '') => send('GET', path),
    /** `code` is encoded as a client would. */
    put: (code: string, body: unknown) =>
      send('PUT', `/by-external-id/${encodeURIComponent(code)}`, { body }),
    patch: (id: number, body: unknown) => send('PATCH', `/${id}`, { body }),
    remove: (id: number) => send('DELETE', `/${id}`),
    import: (body: unknown, query = '') => send('POST', `/import${query}`, { body }),
    contains: (id: number, lat: number, lng: number) =>
      send('GET', `/${id}/contains?lat=${plain(lat)}&lng=${plain(lng)}`),
    /** The id of a new area; throws unless the answer is 201. */
    make: async (body: unknown) => {
      const reply = await post(body);
      if (reply.status !== 201) throw new Error(`POST /areas answered ${reply.status}: ${reply.text}`);
      return reply.body.data.id as number;
    },
    /** All ids, page after page. */
    ids: async () => {
      const ids: number[] = [];
      for (;;) {
        const { body } = await send('GET', `?limit=200&offset=${ids.length}`);
        ids.push(...body.data.map((area: { id: number }) => area.id));
        if (body.data.length === 0 || ids.length >= body.meta.total) return ids;
      }
    },
  };
}

export interface AreaPod extends OwnerPod {
  /** The area routes as the key of the owner sees them. */
  readonly api: AreaApi;
  /** The same for another account: owner1@example.com, owner2@example.com, … */
  newAccount(): Promise<AreaApi>;
}

/** Starts a pod for the tests of the file or suite that calls this, and stops it after them. */
export function areaPod(setUp?: (owner: OwnerPod) => Promise<unknown>): AreaPod {
  const owner = ownerPod({}, setUp);
  let accounts = 0;
  return Object.assign(owner, {
    api: areaApi(owner.pod, () => owner.key),
    newAccount: async () => {
      const email = `owner${++accounts}@example.com`;
      await owner.admin.account(email);
      return areaApi(owner.pod, (await owner.admin.key(email)).key);
    },
  });
}

/** Decimal notation, whatever the size of the number; as exact as 20 digits are. */
function plain(value: number): string {
  return /e/.test(String(value)) ? value.toFixed(20) : String(value);
}

/** `422 name REQUIRED, radius_m OUT_OF_RANGE`, `404 NOT_FOUND`, `200`: what an answer says, in short. */
export function gist({ status, body }: Reply): string {
  const error = body?.error;
  if (error === undefined) return String(status);
  if (error.code !== 'VALIDATION_ERROR') return `${status} ${error.code}`;
  const details = error.details.map(
    ({ field, code }: { field: string | null; code: string }) => `${field} ${code}`,
  );
  return `${status} ${details.join(', ')}`;
}
