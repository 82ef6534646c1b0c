import { WorkTurns } from '../../src/base/workTurns.ts';
import { Bodies } from '../../src/http/bodies.ts';
import type { BodyPorts } from '../../src/http/takeBody.ts';

/** Turns for long computations, as a pod has them. */
export function newTurns(): WorkTurns<number | string> {
  return new WorkTurns(3);
}

/** What an app needs to read bodies. */
export function newBodyPorts(): BodyPorts {
  return { bodies: new Bodies(), turns: newTurns() };
}
