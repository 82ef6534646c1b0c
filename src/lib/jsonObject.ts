/** A JSON object: neither an array nor null. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a member of a JSON object counts as not sent: null acts as missing. */
export function isMissing(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}
