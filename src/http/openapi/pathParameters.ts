import { EXAMPLE_CIRCLE } from '../../areas/areaExamples.ts';
import { EXTERNAL_ID } from '../../areas/externalId.ts';
import { EXAMPLE_IMEI } from '../../devices/deviceExamples.ts';
import { IMEI } from '../../devices/imei.ts';
import { invariant } from '../../lib/invariant.ts';
import { DELIVERY_ID } from '../../webhooks/message.ts';
import { EXAMPLE_EXHAUSTED } from '../../webhooks/webhookExamples.ts';
import { ID } from './commonSchemas.ts';
import { patternOf, type Schema, text } from './schema.ts';

interface PathParameter {
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

const PATH_PARAMETERS: Readonly<Record<string, PathParameter>> = {
  imei: {
    description: 'The IMEI of the device: 14 to 17 digits.',
    schema: text(undefined, { pattern: patternOf(IMEI) }),
    example: EXAMPLE_IMEI,
  },
  id: { description: 'The id.', schema: ID },
  externalId: {
    description:
      "The area's code in your system: 1 to 100 letters, digits and . _ : / @ # - (encode / as %2F and # as %23).",
    schema: text(undefined, { pattern: patternOf(EXTERNAL_ID) }),
    example: EXAMPLE_CIRCLE.definition.externalId,
  },
  deliveryId: {
    description: 'The id of the delivery.',
    schema: text(undefined, { pattern: patternOf(DELIVERY_ID) }),
    example: EXAMPLE_EXHAUSTED.id,
  },
};

/** The Parameter Objects of what stands in a route's path. */
export function pathParameters(path: string): object[] {
  return Array.from(path.matchAll(/[:*](\w+)/g), ([, name = '']) => {
    const parameter = PATH_PARAMETERS[name];
    invariant(parameter, `the path parameter ${name} is described`);
    return { name, in: 'path', required: true, ...parameter };
  });
}
