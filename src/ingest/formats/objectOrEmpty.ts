/** A part of a JSON body whose members may be looked for, also where it is missing or something else. */
export function objectOrEmpty(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}
