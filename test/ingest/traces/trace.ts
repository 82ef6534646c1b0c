/**
 * A story of devices and areas, and the geofence events that it must produce. Areas are bodies of the wire and points
 * are those of POST /positions, so a story can be played against the engine as well as through the API. Times are
 * seconds from the beginning of the story, by GPS; fractions are milliseconds.
 */
export interface Trace {
  /** What it promises. */
  readonly name: string;
  /** The sentence that it proves. */
  readonly rule: string;
  /** Their names, and the organization each belongs to at the beginning. Without: anna, in none. */
  readonly accounts: Readonly<Record<string, { readonly organization: string | null }>>;
  /** Whose each is, and whether it is the organization's. Without: van, private to anna. */
  readonly devices: Readonly<Record<string, { readonly owner: string; readonly shared: boolean }>>;
  readonly steps: readonly Step[];
  /** All of them, in the order of production. */
  readonly events: readonly ExpectedEvent[];
}

export type Step =
  /** One call of POST /positions. */
  | { readonly kind: 'send'; readonly points: readonly TracePoint[] }
  /** The body's name is the area's name in the story; ids rise in the order of creation. */
  | { readonly kind: 'create'; readonly by: string; readonly area: string; readonly body: AreaBody }
  /** By the account that created it. */
  | { readonly kind: 'patch'; readonly area: string; readonly body: AreaBody }
  | { readonly kind: 'delete'; readonly area: string }
  /** It becomes the organization's, or its account's again. */
  | { readonly kind: 'share' | 'unshare'; readonly area: string }
  /** null: the account leaves its organization. */
  | { readonly kind: 'join'; readonly account: string; readonly organization: string | null };

export type AreaBody = Readonly<Record<string, unknown>>;

export interface TracePoint {
  readonly device: string;
  readonly atSeconds: number;
  readonly latitude: number;
  readonly longitude: number;
}

/**
 * `data.enteredAt` is `sinceSeconds`; `data.staySeconds` of an exit is the time from it to `atSeconds`. The position
 * is that of the device's point at `atSeconds`.
 */
export interface ExpectedEvent {
  readonly event: 'entry' | 'exit';
  readonly device: string;
  /** The area's name in the story; `areaName` is the one in the event, which differs after a change of name. */
  readonly area: string;
  readonly areaName: string;
  readonly atSeconds: number;
  readonly sinceSeconds: number;
  readonly dwellSeconds: number;
  /** The accounts that find it in their list of events when the story is over. */
  readonly readBy: readonly string[];
}

/** What a story is made of; accounts and devices have defaults. */
export function trace(
  name: string,
  rule: string,
  story: Pick<Trace, 'events'> & {
    readonly steps: readonly (Step | readonly Step[])[];
    readonly accounts?: Trace['accounts'];
    readonly devices?: Trace['devices'];
  },
): Trace {
  return {
    name,
    rule,
    accounts: { anna: { organization: null } },
    devices: { van: { owner: 'anna', shared: false } },
    ...story,
    steps: story.steps.flat(),
  };
}

/** [lat, lng] */
export type Place = readonly [latitude: number, longitude: number];

export function point(atSeconds: number, [latitude, longitude]: Place, device = 'van'): TracePoint {
  return { device, atSeconds, latitude, longitude };
}

/** All points in one call. */
export function batch(...points: readonly TracePoint[]): Step {
  return { kind: 'send', points };
}

/** Points one by one. */
export function drive(
  ...points: readonly (readonly [atSeconds: number, place: Place, device?: string])[]
): Step[] {
  return points.map(([atSeconds, place, device]) => batch(point(atSeconds, place, device)));
}

export function create(body: AreaBody & { readonly name: string }, by = 'anna'): Step {
  return { kind: 'create', by, area: body.name, body };
}

export function patch(area: string, body: AreaBody): Step {
  return { kind: 'patch', area, body };
}

export function remove(area: string): Step {
  return { kind: 'delete', area };
}

export function share(area: string): Step {
  return { kind: 'share', area };
}

export function unshare(area: string): Step {
  return { kind: 'unshare', area };
}

export function join(account: string, organization: string | null): Step {
  return { kind: 'join', account, organization };
}

type EventDetails = Partial<Pick<ExpectedEvent, 'device' | 'areaName' | 'dwellSeconds' | 'readBy'>>;

/** `sinceSeconds` without a threshold is the time of the entry itself. */
export function entry(
  atSeconds: number,
  area: string,
  { sinceSeconds = atSeconds, ...details }: EventDetails & { readonly sinceSeconds?: number } = {},
): ExpectedEvent {
  return expected('entry', atSeconds, sinceSeconds, area, details);
}

export function exit(
  atSeconds: number,
  area: string,
  { sinceSeconds, ...details }: EventDetails & { readonly sinceSeconds: number },
): ExpectedEvent {
  return expected('exit', atSeconds, sinceSeconds, area, details);
}

function expected(
  event: ExpectedEvent['event'],
  atSeconds: number,
  sinceSeconds: number,
  area: string,
  details: EventDetails,
): ExpectedEvent {
  const defaults = { device: 'van', areaName: area, dwellSeconds: 0, readBy: ['anna'] };
  return { event, atSeconds, sinceSeconds, area, ...defaults, ...details };
}
