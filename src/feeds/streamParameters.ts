import { choiceParameter, type Parameter } from '../http/parameter.ts';
import { isBlank, type Query } from '../http/query.ts';
import { STREAMS_PER_KEY } from './streamCounts.ts';

const PARTS = ['devices', 'events'] as const;

type Part = (typeof PARTS)[number];

export const INCLUDE = {
  name: 'include',
  in: 'query',
  required: false,
  explode: false,
  description:
    'What to send, separated by commas: of what the permissions of the key allow. Default: all of that.',
  schema: { type: 'array', items: { type: 'string', enum: PARTS } },
  errorMessage: `include must be a comma-separated subset of ${PARTS.join(', ')}`,
} as const satisfies Parameter & { errorMessage: string };

export const SNAPSHOT = choiceParameter(
  'snapshot',
  ['true', 'false'],
  'Without a cursor: whether the stream begins with the present state of every device.',
  'true',
);

export const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The `id` of the last message: goes on behind it, on any pod. It goes before `cursor`.',
  schema: { type: 'string', maxLength: 500 },
};

export const TOO_MANY_STREAMS = `this API key has ${STREAMS_PER_KEY} open streams already; close one first`;

export function readInclude(query: Query): ReadonlySet<Part> | 'invalid' {
  const sent = query['include'];
  if (sent === undefined || isBlank(sent)) return new Set(PARTS);
  const parts = new Set<Part>();
  for (const word of sent.split(',')) {
    const part = PARTS.find((part) => part === word.trim());
    if (part === undefined) return 'invalid';
    parts.add(part);
  }
  return parts;
}
