/** States what must hold; a failure is a bug of this program, never the caller's fault. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

export class InvariantError extends Error {
  override name = 'InvariantError';
}
