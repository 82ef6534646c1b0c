/** The parameters of /osmand that are read. */
const NAMES = [
  'id',
  'deviceid',
  'lat',
  'lon',
  'location',
  'timestamp',
  'speed',
  'bearing',
  'heading',
  'altitude',
  'driverUniqueId',
  'alarm',
  'valid',
] as const;

export type OsmandName = (typeof NAMES)[number];

/** Query or form fields by name. */
export type OsmandParams = Readonly<Partial<Record<OsmandName, string>>>;

/** Phones send a dozen; each costs as much to decode as a point. */
const MAX_FIELDS = 256;

/**
 * What is read of a query and a form (without question mark); the fields of the form go before those of the query. A
 * parameter that is not read (`cell`, `wifi`) may stand there any number of times.
 */
export function readOsmandParams(query: string, form: string): OsmandParams | 'given_twice' | 'too_many' {
  const params: Partial<Record<OsmandName, string>> = {};
  for (const text of [query, form]) {
    if (hasMoreFields(text, MAX_FIELDS)) return 'too_many';
    const seen = new Set<string>();
    for (const [name, value] of new URLSearchParams(text)) {
      if (!isRead(name)) continue;
      if (seen.has(name)) return 'given_twice';
      seen.add(name);
      params[name] = value;
    }
  }
  return params;
}

/**
 * The ingest token among the parameters: of the form before that of the query. One that is given twice is none, and
 * none is looked for among too many.
 */
export function readTokenParameter(query: string, form: string): string | undefined {
  const inForm = tokensOf(form);
  const given = inForm.length > 0 ? inForm : tokensOf(query);
  return given.length === 1 ? given[0] : undefined;
}

const tokensOf = (text: string): readonly string[] =>
  hasMoreFields(text, MAX_FIELDS) ? [] : new URLSearchParams(text).getAll('token');

const READ: ReadonlySet<string> = new Set(NAMES);
const isRead = (name: string): name is OsmandName => READ.has(name);

function hasMoreFields(text: string, max: number): boolean {
  let fields = 1;
  for (let at = text.indexOf('&'); at !== -1 && fields <= max; at = text.indexOf('&', at + 1)) fields++;
  return fields > max;
}
