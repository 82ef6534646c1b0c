import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiRoutes, describeApi, type RoutePorts } from './apiRoutes.ts';
import { invariant } from './lib/errors.ts';

// What the page of the console reads, as TypeScript. The page is checked without the service, so it cannot import the
// types of the service: `npm run types` writes them into a file of its own, from the description of the API.

export const CONSOLE_TYPES = join(import.meta.dirname, 'console', 'page', 'types.ts');

/** What the page reads of each schema: its fields and those of objects within it; null: all. */
const READ: Readonly<Record<string, string | null>> = {
  Area: 'id name color type external_id dwell_seconds center radius_m buffer_m points',
  AreaDevice: 'device imei name plate since entered_at dwell_left_seconds',
  AreaEvent: null,
  AreaOverlap: 'area id name share share_of_other',
  BacktestResult: 'dwell_seconds entries exits devices events',
  ChangedDevice:
    'imei name plate status ignition groups location latitude longitude speed_kmh recorded_at heading',
  Delivery: 'id event_type status attempts next_attempt_at last_status_code last_error created_at',
  DeliveryAttempt: null,
  DeliveryDetail: 'id event_id attempts delivered_at in_flight payload attempt_log',
  Device: 'imei name plate status groups location latitude longitude speed_kmh recorded_at',
  DevicePresence: 'device imei name plate first_at last_at points seconds',
  DeliverySummary: 'total delivered exhausted',
  Explanation: 'verdict message visits gaps notes',
  FleetEvent: null,
  HistoryPeriod: 'from to distance_km moving_seconds parked_seconds gap_seconds max_speed_kmh points',
  HistoryPoint: 'latitude longitude recorded_at speed_kmh',
  LatLng: null,
  LeftOut: 'events is_complete',
  NearDevice: 'imei name plate status distance_km',
  RemovedDevice: 'imei removed',
  Share: 'id name devices expires_at end_reason',
  SharedFleet: null,
  Webhook:
    'id url description events retry_policy max_retries active paused reason since failing attempts next_attempt_at',
};

/** The parts of a schema (OpenAPI 3.0.3) that say what a value looks like. */
interface Schema {
  readonly $ref?: string;
  readonly oneOf?: readonly Schema[];
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly nullable?: boolean;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** The text of the file of types. */
export function consoleTypes(): string {
  // Making a route touches none of its ports.
  const ports: Pick<RoutePorts, 'teardown'> = { teardown: { add: () => undefined } as never };
  const { schemas = {} } = describeApi(apiRoutes(ports as RoutePorts)).components;
  const written = new Map<string, string>();
  /** Writes a schema, and those that it refers to. */
  const write = (name: string): void => {
    if (written.has(name)) return;
    const schema = schemas[name] as Schema | undefined;
    invariant(schema !== undefined, `the description has no schema ${name}`);
    const keyword = name in READ ? 'export type' : 'type';
    const fields = READ[name]?.split(' ') ?? null;
    const refer = (ref: string): string => {
      write(ref);
      return ref;
    };
    written.set(name, `${keyword} ${name} = ${typeOf(schema, fields, refer, '\n')};`);
  };
  Object.keys(READ).forEach(write);
  const types = [...written].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
  return `// Made from the description of the API by "npm run types".\n// biome-ignore-all format: as it was made\n\n${types.join('\n\n')}\n`;
}

/** `fields`: what is read of objects; null: all. `separator`: the text between properties. */
function typeOf(
  schema: Schema,
  fields: readonly string[] | null,
  refer: (name: string) => string,
  separator = ' ',
): string {
  const { $ref, oneOf, type, enum: values, nullable, items, properties = {}, required = [] } = schema;
  const inner = (part: Schema): string => typeOf(part, fields, refer);
  const name = $ref?.split('/').at(-1);
  if (name !== undefined) return refer(name);
  if (oneOf !== undefined) return oneOf.map(inner).join(' | ');
  const orNull = (text: string): string =>
    nullable === true && !values?.includes(null) ? `${text} | null` : text;
  if (separator === ' ' && Object.keys(properties).join() === 'lat,lng') return orNull(refer('LatLng'));
  if (values !== undefined)
    return orNull(
      values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))).join(' | '),
    );
  if (type === 'string' || type === 'boolean' || type === 'number') return orNull(type);
  if (type === 'integer') return orNull('number');
  if (type === 'array') {
    const item = inner(items as Schema);
    return orNull(`readonly ${isOneWord(item) ? item : `(${item})`}[]`);
  }
  invariant(type === 'object', `the types of the console know nothing of ${JSON.stringify(schema)}`);
  const texts = Object.entries(properties)
    .filter(([field]) => fields?.includes(field) ?? true)
    .map(([field, part]) => {
      const indent = separator === ' ' ? '' : '  ';
      return `${indent}readonly ${field}${required.includes(field) ? '' : '?'}: ${inner(part)};`;
    });
  return orNull(['{', ...texts, '}'].join(separator));
}

/** Whether `[]` after this type is of all of it. */
function isOneWord(text: string): boolean {
  if (text.startsWith('{')) return text.endsWith('}') && !text.includes('} | {');
  return !text.includes(' ');
}

if (import.meta.main) writeFileSync(CONSOLE_TYPES, consoleTypes());
