import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiRoutes, describeApi, type RoutePorts } from './apiRoutes.ts';
import { invariant } from './lib/invariant.ts';

// What the page of the console reads, as TypeScript. The page is checked without the service, so it cannot import the
// types of the service: `npm run types` writes them into a file of its own, from the description of the API.

export const CONSOLE_TYPES = join(import.meta.dirname, 'console', 'page', 'types.ts');

/** The schemas that the page uses. Those that they refer to are written as well. */
const READ = [
  'Area',
  'AreaDevice',
  'AreaFieldError',
  'AreaWarning',
  'BacktestNote',
  'BacktestResult',
  'ChangedDevice',
  'Delivery',
  'DeliverySummary',
  'Explanation',
  'FleetEvent',
  'HistoryPoint',
  'LatLng',
  'RemovedDevice',
  'Webhook',
  'WebhookFieldError',
];

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
  const { schemas } = describeApi(apiRoutes(ports as RoutePorts)).components;
  const written = new Map<string, string>();
  const write = (name: string): void => {
    if (written.has(name)) return;
    const schema = schemas?.[name] as Schema | undefined;
    invariant(schema !== undefined, `the description has no schema ${name}`);
    const keyword = READ.includes(name) ? 'export type' : 'type';
    written.set(name, `${keyword} ${name} = ${typeOf(schema, write, '\n')};`);
  };
  READ.forEach(write);
  const types = [...written].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
  return `// Made from the description of the API by "npm run types".\n// biome-ignore-all format: as it was made\n\n${types.join('\n\n')}\n`;
}

/** `write` is called with each schema that this one refers to. `separator`: what stands between properties. */
function typeOf(schema: Schema, write: (name: string) => void, separator = ' '): string {
  const { $ref, oneOf, type, enum: values, nullable, items, properties = {}, required = [] } = schema;
  const inner = (part: Schema): string => typeOf(part, write);
  const name = $ref?.split('/').at(-1);
  if (name !== undefined) {
    write(name);
    return name;
  }
  if (oneOf !== undefined) return oneOf.map(inner).join(' | ');
  const texts: Readonly<Record<string, () => string>> = {
    string: () => 'string',
    boolean: () => 'boolean',
    number: () => 'number',
    integer: () => 'number',
    array: () => {
      const item = inner(items as Schema);
      return `readonly ${item.includes(' | ') && !item.startsWith('{') ? `(${item})` : item}[]`;
    },
    object: () => {
      const fields = Object.entries(properties).map(
        ([field, part]) =>
          `${separator === ' ' ? '' : '  '}readonly ${field}${required.includes(field) ? '' : '?'}: ${inner(part)};`,
      );
      return ['{', ...fields, '}'].join(separator);
    },
  };
  const text =
    values === undefined
      ? texts[type ?? '']?.()
      : values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))).join(' | ');
  invariant(text !== undefined, `the types of the console know nothing of ${JSON.stringify(schema)}`);
  return nullable === true && !values?.includes(null) ? `${text} | null` : text;
}

if (import.meta.main) writeFileSync(CONSOLE_TYPES, consoleTypes());
