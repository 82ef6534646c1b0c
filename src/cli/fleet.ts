import { systemClock } from '../base/clock.ts';
import { readAdminConfig } from '../config.ts';
import { COMMANDS } from './commandTable.ts';
import type { CommandContext } from './context.ts';
import { runCommand } from './runCommand.ts';
import { withSession } from './session.ts';

const EXIT_INTERRUPTED = 130;
/** npm passes Ctrl-C on to a command that the terminal has told of it already. */
const SAME_INTERRUPTION_MS = 500;

// Administration: npm run -s fleet -- <command>
process.exitCode = await runCommand(process.argv.slice(2), {
  commands: COMMANDS,
  context: createContext,
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
});

function createContext(): CommandContext | string[] {
  const config = readAdminConfig(process.env);
  if (!config.ok) return config.error;
  const say = (line: string) => process.stderr.write(`${line}\n`);
  return {
    config: config.value,
    withSession: (work) => withSession(config.value, say, work),
    say,
    // Opened only by who reads it.
    get stdin() {
      return process.stdin;
    },
    interrupted: interruption(say),
    nowMs: systemClock,
  };
}

/** Aborted by the first Ctrl-C (or SIGTERM); one more ends the process. */
function interruption(say: (line: string) => void): AbortSignal {
  const controller = new AbortController();
  let firstMs = 0;
  const interrupt = () => {
    if (controller.signal.aborted) {
      if (systemClock() - firstMs > SAME_INTERRUPTION_MS) process.exit(EXIT_INTERRUPTED);
      return;
    }
    firstMs = systemClock();
    say('ending; once more to end at once');
    controller.abort();
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return controller.signal;
}
