// The scripts of package.json load this before their entry. An older Node cannot read TypeScript, and would only say
// ERR_UNKNOWN_FILE_EXTENSION. So this file is JavaScript.

if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(
    `This needs Node 24, and runs on ${process.version}. "npm ci" installs Node 24 with the packages, and "npm start" and the
other scripts use it. After "npm ci --omit=dev", install Node 24 yourself: https://nodejs.org/en/download`,
  );
  process.exit(1);
}
