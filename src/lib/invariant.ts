/** States what must hold; a false condition is a bug of this program, never an error of the caller. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

export class InvariantError extends Error {
  override name = 'InvariantError';
}
