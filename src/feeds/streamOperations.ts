import type { Operation } from '../http/openapi/operation.ts';
import { text } from '../http/openapi/schema.ts';
import { CURSOR, CURSOR_MESSAGE } from './feedParameters.ts';
import { INCLUDE, LAST_EVENT_ID, SNAPSHOT, TOO_MANY_STREAMS } from './streamParameters.ts';

export const OPEN_STREAM: Operation = {
  id: 'openStream',
  tag: 'Events',
  summary: 'Follow devices and events as they change',
  description: `Server-sent events: \`device\` with an item of /devices/changes, \`fleet_event\` with an item of /events/feed, and \`heartbeat\` every 10 seconds; \`data\` is one line of JSON. \`id\` is a cursor for both, with which any pod goes on: as \`Last-Event-ID\` or \`cursor\`. A slow reader is spared positions in between, never an event. The stream ends when the key, its permissions, its allowlist or its account change, and when the pod stops. One call of the limits; with ${'`'}429${'`'}: ${TOO_MANY_STREAMS}.`,
  parameters: [INCLUDE, SNAPSHOT, CURSOR, LAST_EVENT_ID],
  answers: [
    {
      status: 200,
      description: 'The stream.',
      contentType: 'text/event-stream',
      schema: text('Messages of server-sent events.'),
    },
  ],
  errors: [
    ['BAD_REQUEST', CURSOR_MESSAGE],
    ['BAD_REQUEST', INCLUDE.errorMessage],
    ['BAD_REQUEST', SNAPSHOT.errorMessage],
    'CURSOR_EXPIRED',
  ],
};
