// A process that runs the embedded cluster of a data folder, to be killed by a test:
// node embeddedHolder.ts <URL of the module embedded.ts> <data folder> [settings as JSON]
// It prints one line of JSON, {url, logged} or {error, message}, and runs until its input ends.

const [moduleUrl = '', dataDir = '', settings = '{}'] = process.argv.slice(2);
const { startEmbedded } = (await import(
  moduleUrl
)) as typeof import('../../../src/postgres/embedded/embedded.ts');

const logged: string[] = [];
try {
  const embedded = await startEmbedded({
    dataDir,
    log: (message) => logged.push(message),
    settings: JSON.parse(settings) as Record<string, string>,
  });
  process.on('SIGINT', () => undefined); // as a service that first finishes what is in flight
  console.log(JSON.stringify({ url: embedded.url, logged }));
  process.stdin.resume();
  process.stdin.once('end', () => void embedded.stop());
} catch (error) {
  const { name, message } = error as Error;
  console.log(JSON.stringify({ error: name, message }));
}
