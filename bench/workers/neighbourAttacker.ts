import { Agent, request } from 'node:http';
import type { SelfSignedCertificate } from '../../src/cli/commands/webhook.ts';
import { type AttackCall, type AttackedPlaces, type AttackSetup, attackerOf } from '../neighbours/attack.ts';
import { ATTACKS } from '../neighbours/attacks.ts';
import { openReceiver } from '../setup/receivers.ts';
import { answerQuestions } from '../worker.ts';

export type AttackerQuestion =
  | { readonly kind: 'listen'; readonly certificate: SelfSignedCertificate }
  | ({
      readonly kind: 'attack';
      readonly name: string;
      readonly limitMs: number;
    } & AttackSetup &
      AttackedPlaces);

export interface AttackerReply {
  readonly url: string;
  readonly seconds: number;
  /** Number of answers by status. Calls without an answer are counted by reason. */
  readonly answers: Readonly<Record<string, number>>;
}

let url = '';

// A worker: the hostile caller.
answerQuestions(async (question: AttackerQuestion): Promise<AttackerReply> => {
  if (question.kind === 'listen') {
    url = await openReceiver(question.certificate, (request, response) => {
      request.resume();
      request.on('error', () => undefined); // the sender gave up
      if (request.url?.startsWith('/hang') !== true) response.end();
    });
    return { url, seconds: 0, answers: {} };
  }
  return attack(question);
});

async function attack({ name, limitMs, ...setup }: Extract<AttackerQuestion, { kind: 'attack' }>) {
  const answers: Record<string, number> = {};
  const count = (what: string) => {
    answers[what] = (answers[what] ?? 0) + 1;
  };
  const stop = new AbortController();
  const agent = new Agent({ keepAlive: true });
  const timer = setTimeout(() => stop.abort(), limitMs);
  const startMs = performance.now();
  try {
    const call = async (asked: AttackCall) => {
      const status = await send(asked, agent, stop.signal);
      count(String(status));
      return typeof status === 'number' ? status : null;
    };
    const attacker = attackerOf(setup, { stopped: stop.signal, call, count });
    const ended = ATTACKS.find((attack) => attack.name === name)?.run(attacker);
    const cut = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
    await Promise.race([ended, cut]);
    return { url, seconds: (performance.now() - startMs) / 1_000, answers };
  } finally {
    clearTimeout(timer);
    stop.abort();
    agent.destroy();
  }
}

function send(
  { url, method = 'GET', headers, body, manner }: AttackCall,
  agent: Agent,
  stopped: AbortSignal,
): Promise<number | string> {
  return new Promise((resolve) => {
    const length =
      manner === 'unfinished' || body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const asked = request(url, { agent, method, headers: { ...headers, ...length }, signal: stopped });
    asked.once('error', (error: NodeJS.ErrnoException) =>
      resolve(stopped.aborted ? 'cut' : (error.code ?? error.name)),
    );
    asked.once('response', (response) => {
      response.once('error', () => resolve('cut'));
      response.once('end', () => resolve(response.statusCode ?? 0));
      if (manner !== 'unread') response.resume();
    });
    if (manner === 'unfinished') asked.write(body);
    else asked.end(body);
  });
}
