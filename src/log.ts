import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';

/** The log of the service on stdout: lines to read in a terminal, elsewhere one JSON object a line. */
export async function openLog(level: Config['logLevel'], inTerminal: boolean): Promise<Logger> {
  if (!inTerminal) return pino({ level });
  const { default: pretty } = await import('pino-pretty'); // loaded where there is somebody to read it
  return pino(
    { level },
    pretty({ sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss', ignore: 'pid,hostname' }),
  );
}
