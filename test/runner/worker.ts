import { suite } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { FileOrder } from './messages.ts';
import { beginFile } from './reporter.ts';

// A process of a test run. It takes one file after the other, so that what they share is loaded and compiled once. The
// tests, hooks and errors of a file belong to a suite with its name; reporter.ts sends what became of them.

const environment = { ...process.env };

process.on('message', (order: FileOrder) => {
  restoreEnvironment();
  beginFile(order);
  void suite(order.file, async () => {
    await import(pathToFileURL(order.file).href);
  });
});

/** A variable that the file before has set would reach the processes that this file starts. */
function restoreEnvironment(): void {
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
  Object.assign(process.env, environment);
}
