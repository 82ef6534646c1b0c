import { OFFSET_MAX } from '../listPageAnswer.ts';

/** The text at the head of the description (CommonMark). */
export const INTRODUCTION = `
Devices, their positions and history, fleet events, geofence areas, and webhooks.

**Requests.** Send your key in the header \`X-API-Key\`. A key sees the resources of its account and those shared in its
organization. Everything else is answered with 404, as if it did not exist. Each operation names the permission it
needs. The webhook routes also accept a session of the application, for which
\`/api/v1\` carries all routes of v3.

**Responses.** \`{ data, meta }\`; lists have \`meta.pagination\`. Times are ISO 8601 in UTC. Fields may be added to
responses, so ignore those you do not know.

**Errors.** \`{ error: { code, message } }\`. Rely on the code: the message is for people, and may change. 422 adds
\`details\` with every invalid field. These errors are the same for every operation:

- 403: the key is missing, unknown or revoked, its owner is inactive, it may not be used from this address, or it lacks
  the permission.
- 405: the path has other methods, which the header \`Allow\` lists.
- 408, 431: the request was not complete in time, or its headers are too large.
- 429: a limit is exceeded.
- 500, 503: an internal error, or the database cannot be reached or takes too long.

**Parameters.** \`limit\` and \`offset\` are moved into their range. Numbers are in decimal notation. A blank parameter
counts as missing. A parameter that is given twice is 400, and so is an id in the path that is malformed. Parameters that
an operation of v3 does not know are ignored, and the header \`X-Unknown-Parameters\` names them; with \`strict=true\` they
are 400.

**Long lists.** Events and deliveries can be paged through to an offset of ${OFFSET_MAX}. Narrow longer lists with
\`from\` and \`to\`.

**Methods.** HEAD answers like GET without a body. OPTIONS lists the methods of a path.

**Limits.** Unless the operator has set others: 120 requests a minute and 1000 an hour per key, 120 a minute per IP
address.

**Versions.** v3 is a beta: every response says so in \`X-API-Status: beta\`. The device and event routes also exist
under \`/api/v2\`, with the same responses but for two things: some errors there are plain strings, and a geofence event
names its area \`geofenceId\`.
`.trim();
