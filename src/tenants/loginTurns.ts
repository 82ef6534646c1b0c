import { FairSemaphore, Overloaded } from '../lib/fairSemaphore.ts';

/** The number of logins that are checked in ten seconds: each takes a thread for a fifth of a second, and 32 MB. */
const WAITING = 50;
const WAITING_PER_KEY = 20;
/** Who has waited for longer, on a slower or busier machine, is about to get the error that it takes too long. */
const WAIT_LIMIT_MS = 10_000;

/** Whose password is checked. */
export interface LoginTurn {
  readonly email: string;
  /** Where the attempt comes from (see addressNetwork). */
  readonly network: string;
  /** This account has logged in from there before. */
  readonly isKnown: boolean;
}

/**
 * Decides whose password is checked next, since somebody may send more than can be checked. There are two queues with
 * one check at a time, so that guesses use one core at most. One is for accounts at addresses from which they have
 * logged in before, fair by account. The other is for everybody else, fair by network. So somebody who guesses never
 * delays an owner at a usual address; elsewhere an owner waits for one check of each network that guesses.
 */
export class LoginTurns {
  readonly #nowMs: () => number;
  readonly #known = queue();
  readonly #new = queue();

  /** @param nowMs a clock that is never set */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /**
   * The result of `check`, once it is its turn. Rejects with Overloaded, without a check, when too many wait or the
   * turn comes too late.
   */
  run<T>({ email, network, isKnown }: LoginTurn, check: () => Promise<T>): Promise<T> {
    const askedAtMs = this.#nowMs();
    const checkInTime = async (): Promise<T> => {
      if (this.#nowMs() - askedAtMs > WAIT_LIMIT_MS) throw new Overloaded('the turn came too late');
      return check();
    };
    return isKnown ? this.#known.run(email, checkInTime) : this.#new.run(network, checkInTime);
  }
}

function queue(): FairSemaphore<string> {
  return new FairSemaphore({
    running: 1,
    runningPerKey: 1,
    waiting: WAITING,
    waitingPerKey: WAITING_PER_KEY,
  });
}
