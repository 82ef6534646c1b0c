import type { IncomingMessage, RequestListener } from 'node:http';
import type { Clock } from '../base/clock.ts';
import type { Admission } from '../flows/admit.ts';
import { type AdmissionPorts, admitRequest, refusalAnswer, refuseApiVersion } from './admission.ts';
import type { Answer } from './answer.ts';
import { answerRoute, judgeCall } from './answerRoute.ts';
import { type FailureLog, failureAnswer } from './failure.ts';
import type { Observe } from './measure.ts';
import { type PollingMatch, PollingTable } from './pollingTable.ts';
import { PollingWriter } from './pollingWriter.ts';
import type { Probes } from './probes.ts';
import type { Route } from './route.ts';

export interface PollingPorts extends AdmissionPorts {
  readonly routes: readonly Route[];
  readonly clock: Clock;
  readonly probes: Probes;
  readonly log: FailureLog;
  readonly observe: Observe;
}

/**
 * Answers the polled routes without the chain of `rest` (the app), and leaves every other request to it: the same
 * admission, the same route functions, the same headers, so that nobody can tell by which way an answer came. The
 * chain costs more than admission, index and JSON together.
 */
export function pollingListener(ports: PollingPorts, rest: RequestListener): RequestListener {
  const table = new PollingTable(ports.routes);
  const writer = new PollingWriter(ports.observe, (error, request) =>
    failureAnswer(error, request, ports.log),
  );
  return (request, response) => {
    const match =
      request.method === 'GET' && ports.probes.loaded() ? table.find(request.url as string) : null;
    if (match === null) {
      rest(request, response);
      return;
    }
    const startedAtMs = performance.now();
    const answer = answerMatch(ports, match, request);
    if (answer instanceof Promise) {
      void answer.then((answer) => writer.put(response, match.entry, answer, startedAtMs));
    } else {
      writer.put(response, match.entry, answer, startedAtMs);
    }
  };
}

/** Never throws, never rejects: what fails is answered as the app answers it. */
function answerMatch(
  ports: PollingPorts,
  match: PollingMatch,
  request: IncomingMessage,
): Answer | Promise<Answer> {
  const fail = (error: unknown) => failureAnswer(error, request, ports.log);
  try {
    const nowMs = ports.clock();
    const admission = admitRequest(ports, request, nowMs);
    const answer =
      admission instanceof Promise
        ? admission.then((admission) => answerAdmitted(admission, match, request, nowMs))
        : answerAdmitted(admission, match, request, nowMs);
    return answer instanceof Promise ? answer.catch(fail) : answer;
  } catch (error) {
    return fail(error);
  }
}

function answerAdmitted(
  admission: Admission,
  { entry: { version, route }, params }: PollingMatch,
  request: IncomingMessage,
  nowMs: number,
): Answer | Promise<Answer> {
  if (admission.kind !== 'admitted') return refusalAnswer(admission, version);
  const refusal = refuseApiVersion(request, version);
  if (refusal !== null) return refusal;
  const { caller } = admission;
  const judged = judgeCall(version, route, caller, request.url as string);
  if ('refusal' in judged) return judged.refusal;
  const header = (name: string) => request.headers[name]?.toString();
  return answerRoute(route, { version, caller, params, query: judged.query, nowMs, body: null, header });
}
