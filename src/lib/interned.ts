/**
 * Values of which many are equal, each kept once, while it is used. They are known by small numbers from 1 on; 0 is the
 * value that is given for it.
 */
export class Interned<T> {
  readonly #keyOf: (value: T) => string;
  readonly #byKey = new Map<string, number>();
  readonly #values: T[];
  readonly #uses: number[] = [0];
  readonly #free: number[] = [];
  /** What was used last: very often it comes again. */
  #last = 0;

  constructor(none: T, keyOf: (value: T) => string) {
    this.#values = [none];
    this.#keyOf = keyOf;
  }

  value(number: number): T {
    return this.#values[number] as T;
  }

  /** Its number. It is kept until it was released as often as it was used. */
  use(value: T): number {
    if (value === this.#values[0]) return 0;
    if (value !== this.#values[this.#last]) this.#last = this.#numberOf(value);
    this.#uses[this.#last] = (this.#uses[this.#last] as number) + 1;
    return this.#last;
  }

  release(number: number): void {
    if (number === 0) return;
    const uses = (this.#uses[number] as number) - 1;
    this.#uses[number] = uses;
    if (uses > 0) return;
    const [none] = this.#values as [T];
    this.#byKey.delete(this.#keyOf(this.#values[number] as T));
    this.#values[number] = none;
    this.#free.push(number);
  }

  #numberOf(value: T): number {
    const key = this.#keyOf(value);
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const number = this.#free.pop() ?? this.#values.length;
    this.#byKey.set(key, number);
    this.#values[number] = value;
    this.#uses[number] = 0;
    return number;
  }
}
