import { systemClock } from '../lib/clock.ts';

const EXIT_INTERRUPTED = 130;
/** npm passes Ctrl-C on to a process to which the terminal has already sent it. */
const SAME_INTERRUPTION_MS = 500;

/** Aborted by the first Ctrl-C (or SIGTERM), which calls `onFirst`; a second one ends the process. */
export function interruption(onFirst: () => void): AbortSignal {
  const controller = new AbortController();
  let firstMs = 0;
  const interrupt = () => {
    if (controller.signal.aborted) {
      if (systemClock() - firstMs > SAME_INTERRUPTION_MS) process.exit(EXIT_INTERRUPTED);
      return;
    }
    firstMs = systemClock();
    onFirst();
    controller.abort();
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return controller.signal;
}
