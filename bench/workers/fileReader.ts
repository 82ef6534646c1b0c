import { answerQuestions } from '../worker.ts';

export interface FileQuestion {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface FileRead {
  readonly seconds: number;
  readonly bytes: number;
}

// A worker, since reading tens of megabytes would block the measured service.
answerQuestions(async ({ url, headers }: FileQuestion): Promise<FileRead> => {
  const startMs = performance.now();
  const response = await fetch(url, { headers: { ...headers } });
  let bytes = 0;
  for await (const piece of response.body as ReadableStream<Uint8Array>) bytes += piece.length;
  if (response.status !== 200) throw new Error(`${url} was answered with ${response.status}`);
  return { seconds: (performance.now() - startMs) / 1_000, bytes };
});
