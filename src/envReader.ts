/** Reads variables one by one and collects what is wrong with them, so that all of it can be said at once. */
export class EnvReader {
  readonly problems: string[] = [];
  readonly #env: Readonly<Record<string, string | undefined>>;

  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#env = env;
  }

  /** Adds one line. `value` is shown, so it must not be a secret. */
  problem(name: string, rule: string, value?: string): void {
    const shown = value === undefined ? '' : ` (it is ${JSON.stringify(value.slice(0, SHOWN_MAX))})`;
    this.problems.push(`${name} ${rule}${shown}`);
  }

  /** The trimmed text; null when the variable is missing or blank. */
  optional(name: string): string | null {
    return this.#env[name]?.trim() || null;
  }

  text(name: string, fallback: string): string {
    return this.optional(name) ?? fallback;
  }

  /** `value`, or a problem when it is null; `why` says when or how ("with DATABASE_URL"). */
  required<T>(name: string, value: T | null, why: string): T | null {
    if (value === null) this.problem(name, `must be set ${why}`);
    return value;
  }

  /** A whole number in plain decimal digits. */
  integer(name: string, range: { fallback: number; min: number; max: number }): number {
    const text = this.optional(name);
    if (text === null) return range.fallback;
    const value = Number(text);
    if (/^[0-9]{1,15}$/.test(text) && value >= range.min && value <= range.max) return value;
    this.problem(name, `must be a whole number from ${range.min} to ${range.max}`, text);
    return range.fallback;
  }

  oneOf<T extends string>(name: string, allowed: readonly T[], fallback: T): T {
    const text = this.optional(name);
    if (text === null) return fallback;
    const found = allowed.find((value) => value === text);
    if (found === undefined) this.problem(name, `must be one of ${allowed.join(', ')}`, text);
    return found ?? fallback;
  }

  /** A URL with one of `protocols` ("redis:"). Its value is never shown: it may carry a password. */
  url(name: string, protocols: readonly string[]): string | null {
    const text = this.optional(name);
    if (text === null) return null;
    if (protocols.includes(URL.parse(text)?.protocol ?? '')) return text;
    this.problem(
      name,
      `must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
    );
    return null;
  }

  /** A comma list, trimmed; blank entries are kept, since they are mistakes. */
  list(name: string, fallback: readonly string[]): readonly string[] {
    const text = this.optional(name);
    return text === null ? fallback : text.split(',').map((entry) => entry.trim());
  }
}

const SHOWN_MAX = 60;
