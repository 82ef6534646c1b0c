import { closeSync, openSync, readSync } from 'node:fs';
import { EnvError, makeExactValidator } from 'envalid';
import { type CidrSet, parseCidrs } from './access/cidrSet.ts';
import type { ConsoleTiles } from './console/serve/consoleTiles.ts';

// The error of each completes a line that begins with the name of the variable: "PORT must be …". It shows the value
// only where that can be no secret.

const SHOWN_MAX_CHARS = 60;

export const text = makeExactValidator((value) => value);

/** A whole number in plain decimal digits. */
export const wholeNumber = (min: number, max: number) =>
  makeExactValidator((value) => {
    const number = Number(value);
    if (/^[0-9]{1,15}$/.test(value) && number >= min && number <= max) return number;
    throw invalid(`must be a whole number from ${min} to ${max}`, value);
  });

export const oneOf = <T extends string>(allowed: readonly T[]) =>
  makeExactValidator((value) => {
    const found = allowed.find((candidate) => candidate === value);
    if (found !== undefined) return found;
    throw invalid(`must be one of ${allowed.join(', ')}`, value);
  });

/** A comma list of some of `allowed`, in their order. */
export const someOf = <T extends string>(allowed: readonly T[]) =>
  makeExactValidator<ReadonlySet<T>>((value) => {
    const names = entriesOf(value);
    const found = allowed.filter((candidate) => names.includes(candidate));
    if (names.every((name) => found.some((candidate) => candidate === name))) return new Set(found);
    throw invalid(`must be a comma list of ${allowed.slice(0, -1).join(', ')} and ${allowed.at(-1)}`, value);
  });

/** A URL with one of `protocols` ("redis:"). It may carry a password. */
export const url = (...protocols: readonly string[]) =>
  makeExactValidator((value) => {
    if (protocols.includes(URL.parse(value)?.protocol ?? '')) return value;
    const starts = protocols.map((protocol) => `${protocol}//`).join(' or ');
    throw new EnvError(`must be a URL that starts with ${starts}`);
  });

/** A comma list of addresses and networks. */
export const cidrs = makeExactValidator<CidrSet>((value) => {
  const parsed = parseCidrs(value);
  if (parsed.ok) return parsed.value;
  throw invalid('must be a comma list of addresses and networks such as 10.0.0.0/8', parsed.error.join(','));
});

/** Secrets in a comma list. They travel in headers and URLs, so they are plain and too long to be guessed. */
export const tokens = (minChars: number) =>
  makeExactValidator<readonly string[]>((value) => {
    const entries = entriesOf(value);
    if (!entries.every((entry) => /^[\x21-\x7e]*$/.test(entry))) {
      throw new EnvError('must be printable ASCII characters without blanks; a comma separates tokens');
    }
    if (entries.every((entry) => entry.length >= minChars)) return Object.freeze(entries);
    throw new EnvError(
      `must have at least ${minChars} characters, each token of it; make one: openssl rand -hex 16`,
    );
  });

/** A secret of so many bytes in canonical base64, with or without padding. */
export const base64 = (bytes: number) =>
  makeExactValidator((value) => {
    const key = Buffer.from(value, 'base64');
    const canonical = key.toString('base64').replace(/={1,2}$/, '') === value.replace(/={1,2}$/, '');
    if (key.length === bytes && canonical) return key;
    throw new EnvError(`must be ${bytes} bytes in base64; make one: openssl rand -base64 ${bytes}`);
  });

/** Every archive begins like this: the magic number and the version (PMTiles specification, version 3, section 2). */
const PMTILES_START = 'PMTiles\u0003';

/** A URL may carry a key, so it is not repeated. */
export const tiles = makeExactValidator<ConsoleTiles>((value) => {
  const protocol = URL.parse(value)?.protocol;
  if (protocol === 'https:' || protocol === 'http:') return { styleUrl: value };
  if (protocol !== undefined || !/\.pmtiles$/i.test(value))
    throw new EnvError('must be the URL of a MapLibre style (https://…) or the path of a .pmtiles file');
  const start = startOf(value, PMTILES_START.length);
  if (start === null) throw invalid('must be a .pmtiles file that this process can read', value);
  if (start !== PMTILES_START) throw invalid('must be a PMTiles archive of version 3', value);
  return { file: value };
});

/** The first characters of a file; null where it cannot be read. */
function startOf(path: string, chars: number): string | null {
  try {
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(chars);
      return bytes.toString('latin1', 0, readSync(file, bytes));
    } finally {
      closeSync(file);
    }
  } catch {
    return null; // the caller says so
  }
}

function entriesOf(list: string): string[] {
  return list.split(',').map((entry) => entry.trim());
}

function invalid(rule: string, value: string): EnvError {
  return new EnvError(`${rule} (it is ${JSON.stringify(value.slice(0, SHOWN_MAX_CHARS))})`);
}
