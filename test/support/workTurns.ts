import { WorkTurns } from '../../src/base/workTurns.ts';
import { BodyBudget } from '../../src/http/bodies/bodyBudget.ts';
import type { BodyPorts } from '../../src/http/bodies/takeBody.ts';

/** Turns for long computations, as a pod has them. */
export function newTurns(): WorkTurns<number | string> {
  return new WorkTurns(3);
}

/** What an app needs to read bodies. */
export function newBodyPorts(): BodyPorts {
  return { bodies: new BodyBudget(), turns: newTurns() };
}
