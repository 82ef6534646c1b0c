import module from 'node:module';
import { fileURLToPath } from 'node:url';

// The scripts of package.json load this before their entry. An older Node cannot read TypeScript, and would only say
// ERR_UNKNOWN_FILE_EXTENSION. So this file is JavaScript.

if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(
    `This needs Node 24, and runs on ${process.version}. "npm ci" installs Node 24 with the packages, and "npm start" and the
other scripts use it. After "npm ci --omit=dev", install Node 24 yourself: https://nodejs.org/en/download`,
  );
  process.exit(1);
}

// What a process has compiled serves the next one: it loads the code in half the time. Not in a folder that all users of the
// machine may write to. Where it cannot be written, each process compiles for itself.
module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/fleet', import.meta.url)));
