import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { AccessDecision } from '../access/authorizer.ts';
import type { Clock } from '../lib/clock.ts';
import type { Answer } from './answer.ts';
import { answerRoute, resolveCall } from './answerRoute.ts';
import { type AuthorizePorts, authorizeRequest, deniedAnswer, rejectApiVersion } from './authorize.ts';
import type { Observe } from './measure.ts';
import { type PollingMatch, PollingTable } from './pollingTable.ts';
import { PollingWriter } from './pollingWriter.ts';
import type { Probes } from './probes.ts';
import type { Route } from './route.ts';
import { whenGone } from './send.ts';
import { type ErrorLog, type ErrorPorts, unexpectedErrorAnswer } from './unexpectedError.ts';
import { UNKNOWN_PARAMETERS_HEADER } from './unknownParameters.ts';

export interface PollingPorts extends AuthorizePorts {
  readonly routes: readonly Route[];
  readonly clock: Clock;
  readonly probes: Probes;
  readonly log: ErrorLog;
  readonly onDamaged: ErrorPorts['onDamaged'];
  readonly observe: Observe;
}

/**
 * Answers the polled routes without the chain of `rest` (the app), and passes every other request to it. Authorization,
 * route functions and headers are the same, so that an answer does not show which way it came. The chain costs more
 * than authorization, index and JSON together.
 */
export function pollingListener(ports: PollingPorts, rest: RequestListener): RequestListener {
  const table = new PollingTable(ports.routes);
  const writer = new PollingWriter(ports.observe, (error, request) =>
    unexpectedErrorAnswer(error, request, ports),
  );
  return (request, response) => {
    const match =
      request.method === 'GET' && ports.probes.loaded() ? table.find(request.url as string) : null;
    if (match === null) {
      rest(request, response);
      return;
    }
    const startedAtMs = performance.now();
    const answer = answerMatch(ports, match, request, response);
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
  response: ServerResponse,
): Answer | Promise<Answer> {
  const fail = (error: unknown) => unexpectedErrorAnswer(error, request, ports);
  try {
    const nowMs = ports.clock();
    const decision = authorizeRequest(ports, request, nowMs);
    const answer =
      decision instanceof Promise
        ? decision.then((decision) => answerAuthorized(decision, match, response, nowMs, fail))
        : answerAuthorized(decision, match, response, nowMs, fail);
    return answer instanceof Promise ? answer.catch(fail) : answer;
  } catch (error) {
    return fail(error);
  }
}

function answerAuthorized(
  decision: AccessDecision,
  { entry, params }: PollingMatch,
  response: ServerResponse,
  nowMs: number,
  fail: (error: unknown) => Answer,
): Answer | Promise<Answer> {
  const { version, route } = entry;
  const request = response.req;
  if (decision.kind !== 'granted') return deniedAnswer(decision, version);
  const error = rejectApiVersion(request, version);
  if (error !== null) return error;
  const { caller } = decision;
  const resolved = resolveCall(entry, caller, request.url as string);
  const { unknown } = resolved;
  if ('error' in resolved) return unknown === null ? resolved.error : withUnknown(resolved.error, unknown);
  const header = (name: string) => request.headers[name]?.toString();
  const plain = { version, caller, params, query: resolved.query, nowMs, body: null, header };
  const call =
    route.endsItself === undefined
      ? plain
      : { ...plain, whenLeft: (listener: () => void) => whenGone(response, listener) };
  if (unknown === null) return answerRoute(route, call);
  const answered = async () => answerRoute(route, call);
  return answered()
    .catch(fail)
    .then((answer) => withUnknown(answer, unknown));
}

/** Also where the route has failed: whoever misspells a parameter is told in any case. */
function withUnknown(answer: Answer, unknown: string): Answer {
  return { ...answer, headers: { ...answer.headers, [UNKNOWN_PARAMETERS_HEADER]: unknown } };
}
