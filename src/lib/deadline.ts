/** What was waited for did not come in time. It may still happen. */
export class DeadlineExceeded extends Error {
  override name = 'DeadlineExceeded';
}

/** A computation, with its waits for its turns, took longer than it may. Unlike DeadlineExceeded it blames nobody else. */
export class OutOfTime extends Error {
  override name = 'OutOfTime';
}

/** `promise`, or a rejection with `Exceeded` when it has not settled within `limitMs`. */
export function withDeadline<T>(
  promise: Promise<T>,
  limitMs: number,
  what: string,
  Exceeded: typeof DeadlineExceeded | typeof OutOfTime = DeadlineExceeded,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Exceeded(`${what} took longer than ${limitMs} ms`)), limitMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
