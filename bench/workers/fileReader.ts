import { setTimeout as sleep } from 'node:timers/promises';
import { answerQuestions } from '../worker.ts';

export interface FileQuestion {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Reads no faster than that. */
  readonly bytesPerSecond?: number;
}

export interface FileRead {
  readonly seconds: number;
  readonly bytes: number;
}

/** A shorter pause of a slow reader is made up for later. */
const PAUSE_MS = 10;

// A worker, since reading tens of megabytes would block the measured service.
answerQuestions(async ({ url, headers, bytesPerSecond }: FileQuestion): Promise<FileRead> => {
  const startMs = performance.now();
  const response = await fetch(url, { headers: { ...headers } });
  let bytes = 0;
  for await (const piece of response.body as ReadableStream<Uint8Array>) {
    bytes += piece.length;
    if (bytesPerSecond === undefined) continue;
    const aheadMs = (bytes / bytesPerSecond) * 1_000 - (performance.now() - startMs);
    if (aheadMs > PAUSE_MS) await sleep(aheadMs);
  }
  if (response.status !== 200) throw new Error(`${url} was answered with ${response.status}`);
  return { seconds: (performance.now() - startMs) / 1_000, bytes };
});
