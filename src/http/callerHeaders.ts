/** What a request says of its caller; undefined where the header is missing. */
export interface CallerHeaders {
  readonly apiKey: string | undefined;
  readonly forwardedFor: string | undefined;
  readonly apiVersion: string | undefined;
}

/**
 * Picks the caller's headers out of Node's flat list of names and values; several of one name are joined by commas
 * (RFC 9110 section 5.3). `request.headers` says the same, but sorts every header of the request into an object first.
 */
export function callerHeaders(rawHeaders: readonly string[]): CallerHeaders {
  let apiKey: string | undefined;
  let forwardedFor: string | undefined;
  let apiVersion: string | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    // Lengths first: hardly any other header is lower-cased for this.
    if (name.length === 9 && name.toLowerCase() === 'x-api-key') apiKey = joined(apiKey, value);
    else if (name.length === 13 && name.toLowerCase() === 'x-api-version')
      apiVersion = joined(apiVersion, value);
    else if (name.length === 15 && name.toLowerCase() === 'x-forwarded-for')
      forwardedFor = joined(forwardedFor, value);
  }
  return { apiKey, forwardedFor, apiVersion };
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}
