import { FairSemaphore, Overloaded } from '../base/fairSemaphore.ts';

/** Two of the four threads that Node has for such work: a check takes one of them for a fifth of a second, and 32 MB. */
const CHECKS = 2;
/** As many as are checked in six seconds. */
const WAITING = 60;
const WAITING_PER_KEY = 20;
/** Who has waited for longer, on a machine that is slower or busier than that, is about to be told that it takes too long. */
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
 * Who has a password checked next, since somebody may send more to check than there is time for. Two queues take turns:
 * accounts at addresses from which they have logged in before, fair by account; and all others, fair by network. So
 * whoever guesses, from however many networks, keeps an owner out of no usual place; elsewhere an owner waits for one
 * check of each network that guesses.
 */
export class LoginTurns {
  readonly #nowMs: () => number;
  readonly #checks = new FairSemaphore<'known' | 'new'>({
    running: CHECKS,
    runningPerKey: CHECKS,
    waiting: 2 * CHECKS,
    waitingPerKey: CHECKS,
  });
  readonly #known = queue();
  readonly #new = queue();

  /** @param nowMs a clock that is never set */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /**
   * What `check` resolves to, when its turn has come. Rejects with Overloaded, without a check, when too many wait or
   * the turn comes too late.
   */
  run<T>({ email, network, isKnown }: LoginTurn, check: () => Promise<T>): Promise<T> {
    const askedAtMs = this.#nowMs();
    const checkInTime = (): Promise<T> => {
      if (this.#nowMs() - askedAtMs > WAIT_LIMIT_MS) throw new Overloaded('the turn came too late');
      return check();
    };
    return isKnown
      ? this.#known.run(email, () => this.#checks.run('known', checkInTime))
      : this.#new.run(network, () => this.#checks.run('new', checkInTime));
  }
}

function queue(): FairSemaphore<string> {
  return new FairSemaphore({
    running: CHECKS,
    runningPerKey: CHECKS,
    waiting: WAITING,
    waitingPerKey: WAITING_PER_KEY,
  });
}
