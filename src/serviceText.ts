import type { Config } from './config.ts';

/** Where a listener is reached from this machine: an address to listen on everywhere is none to connect to. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/** The URL of a listener, for programs on this machine. */
export function listenerUrl(host: string, port: number): string {
  const reachable = reachableHost(host);
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** Where the token of the ingest listener is to be found. */
export function tokenPlace({ ingestTokens, dataDir }: Pick<Config, 'ingestTokens' | 'dataDir'>): string {
  return ingestTokens === null ? `in ${dataDir}/secrets.json` : 'the value of INGEST_TOKEN';
}

/** A word as a shell reads it back. */
export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
