import { BodyBudget, type BodyPorts } from '../../src/http/requestBody.ts';
import { WorkTurns } from '../../src/lib/workTurns.ts';

/** Turns for long computations, as a pod has them. */
export function newTurns(): WorkTurns<number | string> {
  return new WorkTurns(3);
}

/** What an app needs to read bodies. */
export function newBodyPorts(): BodyPorts {
  return { bodies: new BodyBudget(), turns: newTurns() };
}
