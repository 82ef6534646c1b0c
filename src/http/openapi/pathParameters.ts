import { invariant } from '../../lib/invariant.ts';
import type { Schema } from './schema.ts';

/** What the description says of a parameter in a path. */
export interface PathParameter {
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

/** The Parameter Objects of what stands in a route's path. */
export function pathParameters(path: string, described: Readonly<Record<string, PathParameter>>): object[] {
  return Array.from(path.matchAll(/[:*](\w+)/g), ([, name = '']) => {
    const parameter = described[name];
    invariant(parameter, `the path parameter ${name} is described`);
    return { name, in: 'path', required: true, ...parameter };
  });
}
