import { invariant } from '../lib/errors.ts';
import { DAY_MS, formatIso, MINUTE_MS } from '../lib/time.ts';
import type { Stay } from './stays/packedStays.ts';

/**
 * A device of memory, seen for a moment. It is read from the columns when it is first asked for something, or `taken`;
 * after that it does not change. So a caller that keeps one while other work has its turn takes it before.
 */
export class Device {
  /** In the columns; 0 for one that is not in memory. */
  readonly row: number;
  /** Where it is read from; null for one that is not in memory. */
  readonly reader: DeviceReader | null;
  /** Rises with every change. */
  readonly version: number;
  #state: DeviceState | null;

  constructor(reader: DeviceReader | null, row: number, state: DeviceState | null = null) {
    this.reader = reader;
    this.row = row;
    this.version = reader === null ? 0 : reader.version(row);
    this.#state = state;
  }

  /** One that is not in memory, such as an example. */
  static of(fields: DeviceFields, position: LatestPosition | null): Device {
    const { imei, name, plate, ...rest } = fields;
    return new Device(null, 0, { ...rest, names: namesText({ imei, name, plate }), position });
  }

  taken(): this {
    this.#read();
    return this;
  }

  get id(): number {
    return this.#read().id;
  }

  get imei(): string {
    const { names } = this.#read();
    return names.slice(0, imeiEnd(names));
  }

  /** See namesText. */
  get names(): string {
    return this.#read().names;
  }

  get model(): string | null {
    return this.#read().model;
  }

  get groups(): readonly string[] {
    return this.#read().groups;
  }

  get position(): LatestPosition | null {
    return this.#read().position;
  }

  /** What an administrator says about it, as a new object. */
  get fields(): DeviceFields {
    const { id, worldId, names, model, groups, editedAtMs } = this.#read();
    return { id, worldId, ...readNames(names), model, groups, editedAtMs };
  }

  /** Server time of the last accepted point that moved it, or of the last edit if that is later; epoch ms. */
  get updatedAtMs(): number {
    const { editedAtMs, position } = this.#read();
    return Math.max(editedAtMs, position?.movedAtMs ?? 0);
  }

  /** What its status follows from, without the rest of it. */
  get statusFacts(): StatusFacts | null {
    if (this.#state !== null) return this.#state.position;
    return this.reader?.statusFacts(this.row) ?? null;
  }

  #read(): DeviceState {
    if (this.#state !== null) return this.#state;
    const { reader } = this;
    invariant(reader?.version(this.row) === this.version, 'a device is read before it changes');
    const state = reader.state(this.row);
    this.#state = state;
    return state;
  }
}

export type StatusFacts = Pick<LatestPosition, 'recordedAtMs' | 'speedKmh'>;

/** Everything about a device, at a moment. */
export interface DeviceState extends Omit<DeviceFields, 'imei' | 'name' | 'plate'> {
  readonly names: string;
  readonly position: LatestPosition | null;
}

/** The columns of memory, as a device reads them. */
export interface DeviceReader {
  /** Rises with every change of what is in the row. */
  version(row: number): number;
  state(row: number): DeviceState;
  statusFacts(row: number): StatusFacts | null;
}

/** A device and its geodesic distance from the query, in metres. */
export interface NearDevice {
  readonly device: Device;
  readonly distanceM: number;
}

/** A device in an area, with its stay there. */
export interface Occupant extends Stay {
  readonly device: Device;
}

/** The newest evaluated position of a device. */
export interface LatestPosition {
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
  readonly altitudeM: number;
  readonly speedKmh: number;
  /** Last known reading; null when the device never sent one. */
  readonly odometerKm: number | null;
  /** Server time at which this position was accepted. */
  readonly movedAtMs: number;
}

/** Below this a device stands: GPS reports a few km/h of noise for a parked vehicle. */
export const MOVING_FROM_KMH = 5;
/** How long a device stands still, by GPS time, before it counts as parked. */
export const PARKING_MS = 120_000;

/** What a device reported last besides its position. */
export interface Motion {
  /** Degrees, clockwise from north. */
  readonly headingDeg: number;
  readonly ignition: boolean | null;
  /** Rises with each message that changed the state of the device: orders what messages say of one position. */
  readonly revision: number;
  /** The transaction that stored it. */
  readonly xid: number;
}

/** For a device that never moved, and where the motion does not matter. */
export const NO_MOTION: Motion = { headingDeg: 0, ignition: null, revision: 0, xid: 0 };

/** What an administrator says about a device. */
export interface DeviceFields {
  readonly id: number;
  readonly imei: string;
  readonly worldId: number;
  readonly name: string | null;
  readonly plate: string | null;
  readonly model: string | null;
  readonly groups: readonly string[];
  readonly editedAtMs: number;
}

/** An IMEI (15 digits), without its check digit (14) or with a software version (16, 17). */
export const IMEI = /^[0-9]{14,17}$/;

export function isImei(text: string): boolean {
  return IMEI.test(text);
}

// IMEIs as two numbers, in the order of their texts: the first 15 digits, and what follows them.

const HEAD_DIGITS = 15;
const ZERO = 0x30;

/** The first 15 digits as a number; a missing one counts as 0. */
export function imeiHead(imei: string): number {
  let head = 0;
  for (let n = 0; n < HEAD_DIGITS; n++) head = 10 * head + (n < imei.length ? digitAt(imei, n) : 0);
  return head;
}

/** 0: there are 14 digits. 1: 15. Above: the digits after those, of which each has eleven ways to go on. */
export function imeiTail(imei: string): number {
  const rest = imei.length - HEAD_DIGITS;
  if (rest <= 0) return rest + 1;
  return 2 + 11 * digitAt(imei, HEAD_DIGITS) + (rest === 1 ? 0 : 1 + digitAt(imei, HEAD_DIGITS + 1));
}

function digitAt(text: string, at: number): number {
  return text.charCodeAt(at) - ZERO;
}

// What a device is called, as one text that memory keeps: its IMEI, and name and plate as they are in JSON. Answers take
// it as it is. For example: 356938035643809"Van 12","plate":null

export interface Names {
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
}

export const PLATE = ',"plate":';
export const NULL = 'null';
const IMEI_LEAST = 14;

export function namesText({ imei, name, plate }: Names): string {
  return `${imei}${quoted(name)}${PLATE}${quoted(plate)}`;
}

/** Where the IMEI ends and the name begins. */
export function imeiEnd(names: string): number {
  let end = IMEI_LEAST;
  while (isDigit(names.charCodeAt(end))) end++;
  return end;
}

export function readNames(names: string): Names {
  const at = imeiEnd(names);
  const end = valueEnd(names, at);
  const name = textOf(names.slice(at, end));
  return { imei: names.slice(0, at), name, plate: textOf(names.slice(end + PLATE.length)) };
}

/** A text as JSON. */
export function quoted(text: string | null): string {
  if (text === null) return NULL;
  for (let at = 0; at < text.length; at++) {
    if (needsEscape(text.charCodeAt(at))) return JSON.stringify(text);
  }
  return `"${text}"`;
}

/** Control characters, the quotation mark, the backslash, and surrogates, which may stand alone (RFC 8259 section 7). */
export function needsEscape(charCode: number): boolean {
  return charCode < 0x20 || charCode === QUOTE || charCode === BACKSLASH || charCode >= 0xd800;
}

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function isDigit(charCode: number): boolean {
  return charCode >= ZERO && charCode <= ZERO + 9;
}

/** Where the JSON of a text or null ends that begins at `at`. */
function valueEnd(json: string, at: number): number {
  if (json.charCodeAt(at) !== QUOTE) return at + NULL.length;
  let end = at + 1;
  while (json.charCodeAt(end) !== QUOTE) end += json.charCodeAt(end) === BACKSLASH ? 2 : 1;
  return end + 1;
}

function textOf(json: string): string | null {
  if (json === NULL) return null;
  return json.includes('\\') ? JSON.parse(json) : json.slice(1, -1);
}

// What the API shows of devices (see deviceSchemas.ts), written straight from memory as JSON text: in a third of the
// time that JSON.stringify takes.

export function deviceJson(device: Device, nowMs: number): string {
  return `${jsonUpToLocation(device, nowMs)}${locationJson(device.position)}${updatedJson(device)}}`;
}

/** A device as the feeds show it: with heading, altitude and ignition. */
export function changedDeviceJson(
  device: Device,
  nowMs: number,
  headingDeg: number,
  ignition: boolean | null,
): string {
  const { position } = device;
  const location =
    position === null
      ? 'null'
      : `${locationJson(position).slice(0, -1)},"heading":${headingDeg},"altitude_m":${position.altitudeM}}`;
  return `${jsonUpToLocation(device, nowMs)}${location}${updatedJson(device)},"ignition":${ignition}}`;
}

function jsonUpToLocation({ names, model, groups, position }: Device, nowMs: number): string {
  return (
    `${namesJson(names)},"device_model":${quoted(model)},"odometer_km":${position?.odometerKm ?? null}` +
    `,"status":"${statusOf(position, nowMs)}","groups":${listJson(groups)},"location":`
  );
}

/** The beginning of an object: see namesText. */
function namesJson(names: string): string {
  const end = imeiEnd(names);
  const imei = names.slice(0, end);
  return `{"id":"${imei}","imei":"${imei}","name":${names.slice(end)}`;
}

function updatedJson({ updatedAtMs }: Device): string {
  return `,"updated_at":"${formatIso(updatedAtMs)}"`;
}

/** What a device is called and what it does, without where it is. */
export function deviceNamesJson({ names, position }: Device, nowMs: number): string {
  return `${namesJson(names)},"status":"${statusOf(position, nowMs)}"}`;
}

export function removedDeviceJson(imei: string): string {
  return `{"id":"${imei}","imei":"${imei}","removed":true}`;
}

/** A device that the reader may see but that no longer matches its box or filter. */
export function leftDeviceJson(imei: string): string {
  return `{"id":"${imei}","imei":"${imei}","left":true}`;
}

export function nearDeviceJson({ device, distanceM }: NearDevice, nowMs: number): string {
  const { names, position } = device;
  return (
    `${namesJson(names)},"status":"${statusOf(position, nowMs)}","location":${locationJson(position)}` +
    `,"distance_km":${distanceM / 1000}}`
  );
}

export function latestLocationJson({ lat, lng, altitudeM, speedKmh, recordedAtMs }: LatestPosition): string {
  return (
    `{"latitude":${lat},"longitude":${lng},"altitude_m":${altitudeM},"speed_kmh":${speedKmh}` +
    `,"recorded_at":"${formatIso(recordedAtMs)}"}`
  );
}

function locationJson(position: LatestPosition | null): string {
  if (position === null) return 'null';
  const { lat, lng, speedKmh, recordedAtMs } = position;
  return `{"latitude":${lat},"longitude":${lng},"speed_kmh":${speedKmh},"recorded_at":"${formatIso(recordedAtMs)}"}`;
}

export const DEVICE_STATUSES = ['moving', 'parked', 'offline', 'unknown'] as const;

export type DeviceStatus = (typeof DEVICE_STATUSES)[number];

const PARKED_FOR_MS = DAY_MS;
const MOVING_FOR_MS = 10 * MINUTE_MS;

/**
 * The status of a device, computed when it is read from its newest point and the server's clock.
 *
 *   no point                               unknown
 *   under 5 km/h, at most 24 h old         parked
 *   5 km/h or more, at most 10 min old     moving
 *   else                                   offline
 */
export function statusOf(position: StatusFacts | null, nowMs: number): DeviceStatus {
  return position === null ? 'unknown' : statusAt(position.recordedAtMs, position.speedKmh, nowMs);
}

/** The same of a device whose newest point has this time and speed. */
export function statusAt(recordedAtMs: number, speedKmh: number, nowMs: number): DeviceStatus {
  if (nowMs > onlineUntilMs(recordedAtMs, speedKmh)) return 'offline';
  return speedKmh < MOVING_FROM_KMH ? 'parked' : 'moving';
}

/** The last moment at which such a device is not offline. */
export function onlineUntilMs(recordedAtMs: number, speedKmh: number): number {
  return recordedAtMs + (speedKmh < MOVING_FROM_KMH ? PARKED_FOR_MS : MOVING_FOR_MS);
}

function listJson(texts: readonly string[]): string {
  let json = '';
  for (const text of texts) json += json === '' ? quoted(text) : `,${quoted(text)}`;
  return `[${json}]`;
}
