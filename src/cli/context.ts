import type { AdminConfig } from '../config.ts';
import type { Result } from '../lib/result.ts';
import type { Session } from './session.ts';

/** All that a command may use of the world outside. */
export interface CommandContext {
  readonly config: AdminConfig;
  /** Opens a session for the time of `work`; fails when there is no database to be had. */
  withSession<T>(work: (session: Session) => Promise<Result<T, string>>): Promise<Result<T, string>>;
  /**
   * Writes a value on stdout, as one line of JSON; resolves when the next may be written. False when nobody reads on, as
   * behind `| head`.
   */
  print(value: unknown): Promise<boolean>;
  /** One line of progress, on stderr. */
  say(line: string): void;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Asks in the terminal for a line that is not shown; null where stdin is no terminal. Empty when the user gives none. */
  readonly askSecret: ((prompt: string) => Promise<string>) | null;
  /** Aborted by Ctrl-C: long work ends as soon as it can and reports what it did. */
  readonly interrupted: AbortSignal;
  nowMs(): number;
}
