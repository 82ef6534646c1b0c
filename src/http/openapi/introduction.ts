/** The text at the head of the description (CommonMark). */
export const INTRODUCTION = `
Devices, their positions and history, fleet events, geofence areas, and webhooks.

**Calling.** Send your key in the header \`X-API-Key\`. A key sees the resources of its account and those shared in its
organization; anything else is answered with 404, as if it were not there. Each route names the permission it needs.
The webhook routes open with the session of the application, too.

**Answers.** \`{ data, meta }\`; lists carry \`meta.pagination\`. Errors are \`{ error: { code, message } }\`: rely on the
code, the message is for people. 422 adds \`details\` with every invalid field. Times are ISO 8601 in UTC. Fields may be
added to answers, so ignore those you do not know.

**Parameters.** \`limit\` and \`offset\` are moved into their range. Numbers are in decimal notation, a blank parameter
counts as missing, one that is given twice is 400. A path id in another form is 400 before any look-up.

**Long lists.** Events and deliveries can be paged through to an offset of 100000; beyond that a list is narrowed with
\`from\` and \`to\`. What takes the database too long is 503.

**Methods.** HEAD answers like GET without a body. OPTIONS lists what a path has, any other method is 405 with \`Allow\`.

**Limits.** Unless the operator has set others: 120 requests a minute and 1000 an hour per key, 120 a minute per IP
address. Beyond them: 429.

**Versions.** v3 is a beta: every answer says so in \`X-API-Status: beta\`. The device and event routes exist under
\`/api/v2\` as well, with the same answers but two: some errors there are plain strings, and a geofence event names its
area \`geofenceId\`.
`.trim();
