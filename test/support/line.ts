import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** A port of this machine that leads to another, over a line that can be harmed. */
export interface Line {
  readonly port: number;
  /** How many connections were made so far, and how many callers have open. */
  readonly sessions: number;
  readonly open: number;
  /** The port that new connections lead to; null: nobody listens there. */
  target: number | null;
  /** Everything takes so much longer, each way. */
  delayMs: number;
  /** Ends all connections; new ones are made as before. */
  cut(): void;
  /** Ends all connections, and accepts none until `heal`. */
  part(): void;
  /** Nothing gets through until `heal`, and then all that was sent meanwhile. */
  hold(): void;
  /** Open connections stay open for good and carry nothing any more, nor do new ones until `heal`. */
  fallSilent(): void;
  /** The same, but what the client sends arrives: only answers are lost. */
  loseAnswers(): void;
  /** New connections pass again, without delay, and so does what was held. */
  heal(): void;
}

interface Pair {
  /** The client's connection and the one to the target. Where something is lost one may be open when the other is closed. */
  readonly ends: readonly [Socket, Socket];
  readonly sent: Way;
  readonly answered: Way;
}

/** Opens one; it is closed after the test. */
export async function openLine(t: TestContext, target: number | null): Promise<Line> {
  const pairs = new Set<Pair>();
  let sessions = 0;
  let isParted = false;
  let state: readonly [Passage, Passage] = ['open', 'open'];
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.on('error', () => undefined); // connections are cut on purpose
    if (isParted || line.target === null) return void client.destroy();
    sessions++;
    const to = { port: line.target, host: '127.0.0.1', allowHalfOpen: true };
    const upstream = connect(to).on('error', () => undefined);
    const delay = () => line.delayMs;
    const pair: Pair = {
      ends: [client, upstream],
      sent: new Way(client, upstream, delay),
      answered: new Way(upstream, client, delay),
    };
    [pair.sent.passage, pair.answered.passage] = state;
    pairs.add(pair);
    for (const end of pair.ends)
      end.once('close', () => {
        if (pair.ends.every(({ closed }) => closed)) pairs.delete(pair);
      });
  });
  const become = (sent: Passage, answered: Passage): void => {
    state = [sent, answered];
    for (const pair of pairs) {
      pair.sent.become(sent);
      pair.answered.become(answered);
    }
  };
  const cut = (): void => {
    for (const { ends } of pairs) for (const end of ends) end.destroy();
  };
  const line: Line = {
    port: 0,
    target,
    delayMs: 0,
    get sessions() {
      return sessions;
    },
    get open() {
      return [...pairs].filter(({ ends: [client] }) => !client.closed && !client.readableEnded).length;
    },
    cut,
    part: () => {
      isParted = true;
      cut();
    },
    hold: () => become('held', 'held'),
    fallSilent: () => become('lost', 'lost'),
    loseAnswers: () => become('open', 'lost'),
    heal: () => {
      isParted = false;
      line.delayMs = 0;
      become('open', 'open');
    },
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    cut();
    await new Promise((resolve) => server.close(resolve));
  });
  return Object.assign(line, { port: (server.address() as AddressInfo).port });
}

type Passage = 'open' | 'held' | 'lost';

/** One direction of a connection: bytes, and in the end that it is closed. */
class Way {
  /** Once something was lost the rest makes no sense: it is so for good. */
  passage: Passage = 'open';
  readonly #delayMs: () => number;
  readonly #held: (() => void)[] = [];
  /** What is on its way, in the order in which it was sent and arrives. */
  readonly #underway: { readonly arrive: () => void; readonly atMs: number }[] = [];

  constructor(from: Socket, to: Socket, delayMs: () => number) {
    this.#delayMs = delayMs;
    from.on('data', (bytes: Buffer) => this.#take(() => to.write(bytes)));
    from.once('end', () => this.#take(() => to.end()));
    from.once('close', (hasFailed) => {
      if (hasFailed || !from.readableEnded) this.#take(() => to.destroy());
    });
  }

  become(passage: Passage): void {
    if (this.passage === 'lost') return;
    this.passage = passage;
    if (passage === 'open') for (const arrive of this.#held.splice(0)) this.#take(arrive);
  }

  #take(arrive: () => void): void {
    if (this.passage === 'lost') return;
    if (this.passage === 'held') return void this.#held.push(arrive);
    this.#underway.push({ arrive, atMs: performance.now() + this.#delayMs() });
    if (this.#underway.length === 1) this.#deliver();
  }

  #deliver(): void {
    for (let first = this.#underway[0]; first !== undefined; first = this.#underway[0]) {
      const restMs = first.atMs - performance.now();
      if (restMs > 0) return void setTimeout(() => this.#deliver(), Math.ceil(restMs));
      this.#underway.shift();
      first.arrive();
    }
  }
}
