import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/**
 * What a session asks of Postgres: text of statements, and names of statements that are asked again. `message` is the
 * whole of it, with the values of a statement that was prepared before.
 */
export interface Question {
  readonly text: string;
  readonly message: string;
  readonly earlier: readonly string[];
}

/** Where a session stands still: before its question reaches Postgres, or when Postgres has answered it. */
export type Place = 'before' | 'after';

/** Stands between pods and Postgres, and can let one session stand still at a chosen moment. */
export interface PostgresProxy {
  readonly url: string;
  /**
   * Holds the first session from now on that asks a question of which `matches` holds, for good; settles when it
   * stands there. All other sessions go on.
   */
  hold(place: Place, matches: (question: Question) => boolean): Promise<void>;
  /** Its ports as Postgres sees them (`client_port`), of every session so far. */
  readonly sessionPorts: readonly number[];
}

interface Aim {
  readonly place: Place;
  readonly matches: (question: Question) => boolean;
  readonly reached: () => void;
}

/** Starts one for the length of a test. `url` is that of Postgres. */
export async function startPostgresProxy(t: TestContext, url: string): Promise<PostgresProxy> {
  const target = new URL(url);
  const open = new Set<Socket>();
  const sessionPorts: number[] = [];
  let aim: Aim | null = null;
  const server = createServer((client) => {
    const postgres = connect(Number(target.port), target.hostname);
    postgres.once('connect', () => sessionPorts.push(postgres.localPort ?? 0));
    for (const [from, to] of [
      [client, postgres],
      [postgres, client],
    ] as const) {
      open.add(from);
      from.on('error', () => undefined); // pods are killed on purpose
      from.once('close', () => {
        open.delete(from);
        to.destroy();
      });
    }
    const session = new Session();
    let reached: (() => void) | null = null;
    let isHeld = false;
    client.on('data', (bytes: Buffer) => {
      if (isHeld) return;
      for (const { raw, question } of session.messagesOf(bytes)) {
        if (question !== null && aim?.matches(question) === true) {
          isHeld = aim.place === 'before';
          reached = aim.reached;
          aim = null;
          if (isHeld) return reached();
        }
        postgres.write(raw);
      }
    });
    postgres.on('data', (bytes: Buffer) => {
      if (reached === null) return client.write(bytes);
      // Of the answer nothing gets through. ReadyForQuery, its last message, says that Postgres is done.
      if (bytes.length >= READY_BYTES && bytes[bytes.length - READY_BYTES] === READY) reached();
      return false;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const proxied = new URL(url);
  proxied.hostname = '127.0.0.1';
  proxied.port = String((server.address() as { port: number }).port);
  return {
    url: proxied.href,
    sessionPorts,
    hold: (place, matches) =>
      new Promise((resolve) => {
        aim = { place, matches, reached: resolve };
      }),
  };
}

const READY = 'Z'.charCodeAt(0);
/** Type, length and state of the transaction. */
const READY_BYTES = 6;
const HEAD_BYTES = 5;
/** Questions of a session that are remembered: those of its present transaction are among them. */
const EARLIER_MAX = 20;

/** Cuts what a client sends into messages (Postgres' frontend protocol 3, chapter "Message Formats"). */
class Session {
  #pending = Buffer.alloc(0);
  #hasStarted = false;
  readonly #earlier: string[] = [];

  *messagesOf(bytes: Buffer): Generator<{ raw: Buffer; question: Question | null }> {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    for (;;) {
      // The first message has no type.
      const head = this.#hasStarted ? HEAD_BYTES : HEAD_BYTES - 1;
      if (this.#pending.length < head) return;
      const length = this.#pending.readInt32BE(head - 4) + head - 4;
      if (this.#pending.length < length) return;
      const raw = this.#pending.subarray(0, length);
      this.#pending = this.#pending.subarray(length);
      const text = this.#hasStarted ? textOf(raw) : null;
      this.#hasStarted = true;
      const message = raw.toString('latin1');
      yield { raw, question: text === null ? null : { text, message, earlier: [...this.#earlier] } };
      if (text !== null) this.#earlier.push(text);
      if (this.#earlier.length > EARLIER_MAX) this.#earlier.shift();
    }
  }
}

/** Query: its text. Parse: name and text. Bind: the name of what was parsed before. */
function textOf(raw: Buffer): string | null {
  const [first = '', second = ''] = raw.subarray(HEAD_BYTES).toString('latin1').split('\0', 2);
  switch (String.fromCharCode(raw[0] ?? 0)) {
    case 'Q':
      return first;
    case 'P':
      return `${first} ${second}`;
    case 'B':
      return second;
    default:
      return null;
  }
}
